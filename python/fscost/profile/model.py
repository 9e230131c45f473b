"""Profiles: what is formatted and mounted."""

from dataclasses import dataclass, field

from fscost import files


@dataclass(frozen=True)
class DiskSpec:
    """One disk of a profile. `size_bytes` 0 means the size that the run requests."""

    name: str = "main"
    size_bytes: int = 0
    logical_block_bytes: int = 512
    physical_block_bytes: int = 4096
    model: str = ""
    """Device model that times the disk's requests: a name of the catalogue, or the path of a TOML
    file. Alternatively, the path below /dev of a real device that carries them out. Empty: requests
    complete at once."""

    @property
    def device(self) -> str:
        """Path of the real device behind the disk; empty if there is none."""
        return self.model if files.is_device_name(self.model) else ""


@dataclass(frozen=True)
class Array:
    """An md array below a file system: its level, number of members, and other flags of `mdadm
    --create`."""

    level: str
    members: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """A file system as users spell it: type, mkfs flags, mount options.

    `after_mkfs`, `after_mount` and `background` are argument lists that run as root; the agent
    replaces `{disk.main}`, `{disk.journal}` and `{dir}`. `after_mkfs` belongs to the interval
    `mkfs`, and `after_mount` to the interval `mount`. `background` runs as long as the file system
    is mounted, as a cleaner does.
    """

    name: str
    type: str
    mkfs_flags: tuple[str, ...] = ()
    mount_options: str = ""
    disks: tuple[DiskSpec, ...] = (DiskSpec(),)
    array: Array | None = None
    after_mkfs: tuple[tuple[str, ...], ...] = ()
    after_mount: tuple[tuple[str, ...], ...] = ()
    background: tuple[tuple[str, ...], ...] = ()
    summary: str = ""
    kernel: str = ""
    """Guest kernel in the VM lab: a known name, or the path of an image. Empty: the lab's
    default."""
    refused: str = ""
    """Reason why current kernels refuse to mount the profile; empty if they mount it. Such a
    profile still runs, because the kernel decides."""
    sweep: str = ""
    """Spelling with braces that the profile is one combination of; empty if there were none."""
    levels: tuple[tuple[str, str], ...] = ()
    """Factor and level of each brace of `sweep`, in order."""


@dataclass(frozen=True)
class FormatPlan:
    """Commands that the lab runs for a profile on given disks, complete except for the placeholders
    `{disk.NAME}` and `{dir}`."""

    mkfs: tuple[tuple[str, ...], ...]
    mount_type: str
    mount_device: str
    mount_options: str
    after_mount: tuple[tuple[str, ...], ...]
    inspect: tuple[tuple[str, tuple[str, ...]], ...]
    background: tuple[tuple[str, ...], ...] = ()
    after_unmount: tuple[tuple[str, ...], ...] = ()
    sync_tracepoints: tuple[str, ...] = ()
    """Kernel tracepoints that each fsync, fdatasync and O_SYNC write on such a file system passes
    once."""
    needs_tools: tuple[str, ...] = field(default=())
    """Programs that must be on PATH. If one is missing, the cell is skipped, with the name of the
    package that provides it."""
