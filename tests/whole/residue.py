"""What a killed run could leave behind, and how to see it on a machine where others work at the same time."""

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 15.0


@dataclass(frozen=True)
class Process:
    """`started` tells it from a later one of the same number."""

    pid: int
    parent: int
    started: int
    command: str


def processes() -> dict[int, Process]:
    """All that live; zombies have left nothing but a number that their parent has yet to read."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if fields[0] not in (b"Z", b"X"):
                found[int(folder.name)] = Process(int(folder.name), int(fields[1]), int(fields[19]), command)
    return found


def family(root: int) -> list[Process]:
    """The descendants of a process, itself not among them."""
    everyone = processes()
    inside = {root}
    grown = True
    while grown:
        grown = False
        for process in everyone.values():
            if process.parent in inside and process.pid not in inside:
                inside.add(process.pid)
                grown = True
    return [everyone[pid] for pid in inside - {root} if pid in everyone]


def loop_devices() -> set[str]:
    """Attached ones that may be ours: a file in the root of a mount that is in no namespace shows as `/NAME`.

    The number that the kernel gives to each attaching tells them apart.
    """
    found = set()
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            name = file.parts[3]
            number = Path(f"/sys/block/{name}/diskseq").read_text().strip()
            shown = file.read_text().strip()
            if shown.count("/") == 1:
                found.add(f"{name} #{number} on {shown}")
    return found


def held_by_others(ours: set[int]) -> set[str]:
    """Names of loop devices that processes of others have open: those of another run on this machine."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) in ours:
            continue
        with contextlib.suppress(OSError):
            found |= {link.readlink().name for link in (folder / "fd").iterdir() if str(link.readlink()).startswith("/dev/loop")}
    return found


def mounts() -> set[str]:
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


def temporary_files() -> set[str]:
    """But those of the agent's own tests, which may run at the same time."""
    found = {path for folder in ("/tmp", "/run", "/dev/shm", "/var/tmp") for path in Path(folder).glob("*fscost*")}
    return {str(path) for path in found if not path.name.startswith("fscost-agent-")}


@dataclass
class Watch:
    """Begun before a run; `left` says afterwards what of it is still there.

    Others may come and go meanwhile: what is ours and stays is there at every look, so only that counts.
    """

    tag: str
    temporary: Path
    known: set[Process] = field(default_factory=set)
    """Processes seen to be ours."""

    def __post_init__(self) -> None:
        self._loops, self._mounts, self._files = loop_devices(), mounts(), temporary_files()

    def _processes(self) -> set[Process]:
        return {found for found in processes().values() if found in self.known or self._tagged(found)}

    def _tagged(self, process: Process) -> bool:
        with contextlib.suppress(OSError):
            return self.tag.encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
        return False

    def _look(self) -> set[str]:
        ours = self._processes()
        loops = loop_devices() - self._loops
        others = held_by_others({process.pid for process in ours}) if loops else set()
        return {
            *(f"process {process.pid}: {process.command}" for process in ours),
            *(f"loop device {loop}" for loop in loops if loop.split()[0] not in others),
            *(f"mount {line}" for line in mounts() - self._mounts),
            *(f"file {name}" for name in temporary_files() - self._files),
            *(f"file {name}" for name in self.temporary.iterdir()),
        }

    def left(self) -> set[str]:
        """What stayed for `LIMIT_S` seconds; returns as soon as there is nothing."""
        until = time.monotonic() + LIMIT_S
        stayed = self._look()
        while stayed and time.monotonic() < until:
            time.sleep(0.05)
            stayed &= self._look()
        return stayed
