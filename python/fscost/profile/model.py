"""What is formatted and mounted."""

from dataclasses import dataclass, field

from fscost import files


@dataclass(frozen=True)
class DiskSpec:
    """One disk of a profile. `size_bytes` 0 means the size that the run asks for."""

    name: str = "main"
    size_bytes: int = 0
    logical_block_bytes: int = 512
    physical_block_bytes: int = 4096
    model: str = ""
    """Device model that times its requests: a name of the catalogue, or the path of a TOML file.
    Or a real device that carries them out: its path below /dev. Empty: requests complete at
    once."""

    @property
    def device(self) -> str:
        """Path of the real device behind it; empty where there is none."""
        return self.model if files.is_device_name(self.model) else ""


@dataclass(frozen=True)
class Array:
    """An md array below a file system: level, number of members, and the other flags of `mdadm
    --create`."""

    level: str
    members: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """A file system as people spell it: type, mkfs's own flags, mount options.

    `after_mkfs`, `after_mount` and `background` are argument lists run as root, with `{disk.main}`,
    `{disk.journal}` and `{dir}` replaced by
    the agent. `after_mkfs` belongs to the interval `mkfs`, `after_mount` to the interval `mount`;
    `background` runs as long as the file
    system is mounted: a cleaner.
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
    """Of the VM lab: a name that it knows, or the path of an image; empty: the lab's own."""
    refused: str = ""
    """Why today's kernels do not mount it; empty for what works. Such a profile is still run: the
    kernel has the last word."""


@dataclass(frozen=True)
class FormatPlan:
    """What the lab runs for a profile on given disks: every command complete but for the
    `{disk.NAME}` and `{dir}` placeholders."""

    mkfs: tuple[tuple[str, ...], ...]
    mount_type: str
    mount_device: str
    mount_options: str
    after_mount: tuple[tuple[str, ...], ...]
    inspect: tuple[tuple[str, tuple[str, ...]], ...]
    background: tuple[tuple[str, ...], ...] = ()
    after_unmount: tuple[tuple[str, ...], ...] = ()
    sync_tracepoints: tuple[str, ...] = ()
    """The kernel's tracepoints that each fsync, fdatasync and O_SYNC write on such a file system
    passes once."""
    needs_tools: tuple[str, ...] = field(default=())
    """Programs that must be on PATH; the cell is skipped, with the package that brings it, when one
    is missing."""
