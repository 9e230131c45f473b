"""Residue of killed runs: how to detect it on a machine where other programs run at the same
time."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 60.0
LEAST_LOOKS = 5
OF_TEMPFILE = re.compile(r"fscost-[a-z0-9_]{8}")


@dataclass(frozen=True)
class Process:
    """A process; `started` distinguishes it from a later one with the same number."""

    pid: int
    parent: int
    started: int
    command: str


def processes() -> dict[int, Process]:
    """Return all live processes. Zombies are left out: all that remains of them is a number that
    their parent has not read yet."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            command = (
                (folder / "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
                .strip()
            )
            if fields[0] not in (b"Z", b"X"):
                found[int(folder.name)] = Process(
                    int(folder.name), int(fields[1]), int(fields[19]), command
                )
    return found


def family(root: int) -> list[Process]:
    """Return the descendants of a process, without the process itself."""
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
    """Return the attached loop devices that may be ours: a backing file in the root of a mount that
    is in no namespace appears as `/NAME`.

    The kernel numbers each attachment, which distinguishes them.
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
    """Return the names of loop devices that other processes hold open, such as those of another run
    on this machine."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) in ours:
            continue
        with contextlib.suppress(OSError):
            found |= {
                link.readlink().name
                for link in (folder / "fd").iterdir()
                if str(link.readlink()).startswith("/dev/loop")
            }
    return found


def own_mounts() -> int:
    """Create a mount namespace for one run alone and return its descriptor; its mounts are shared,
    as a host's often are.

    A leaked mount stays in the namespace where the run began: a cell's own namespace ends with its
    processes, unless a mount propagates out of it. Mounts of other programs are not visible in this
    namespace, whatever the host does meanwhile.
    """
    shared = "mount --make-rshared / && echo && cat"
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", shared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        return os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY)


def temporary_files() -> set[str]:
    """Return fscost's temporary files, except those of the agent's own tests and of benchmarks, the
    lock of runs, and folders of `tempfile`, of which a runner has its own: others may have them at
    the same time, for long."""
    found = {
        path
        for folder in ("/tmp", "/run", "/dev/shm", "/var/tmp")
        for path in Path(folder).glob("*fscost*")
    }
    others = ("fscost-agent-", "fscost-bench-", "fscost.lock")
    return {
        str(path)
        for path in found
        if not path.name.startswith(others) and not OF_TEMPFILE.fullmatch(path.name)
    }


@dataclass
class Watch:
    """Record of the machine's state before a run; `left` returns what remains of the run
    afterwards.

    Other programs' objects may come and go meanwhile. Residue of the run is present at every look,
    so only that counts.
    """

    tag: str
    temporary: Path
    cell: Path | None = None
    """Folder of the cell. Its agent's environment is cleared, so that it has no tag, but it and
    its descendants write their errors to a file in this folder."""
    known: set[Process] = field(default_factory=set)
    """Processes known to be ours."""
    inside: list[str] = field(init=False, default_factory=list)
    """Command prefix that starts the run in its own mount namespace. Empty for users who cannot
    mount."""

    def __post_init__(self) -> None:
        if os.geteuid() == 0:
            namespace = own_mounts()
            weakref.finalize(self, os.close, namespace)
            self.inside = ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{namespace}"]
        self._loops, self._mounts, self._files = loop_devices(), self._mounted(), temporary_files()

    def _mounted(self) -> set[str]:
        if not self.inside:
            return set()
        return set(
            subprocess.check_output(
                [*self.inside, "cat", "/proc/self/mountinfo"], text=True
            ).splitlines()
        )

    def _processes(self) -> set[Process]:
        return {
            found for found in processes().values() if found in self.known or self._tagged(found)
        }

    def _tagged(self, process: Process) -> bool:
        with contextlib.suppress(OSError):
            if self.tag.encode() in Path(f"/proc/{process.pid}/environ").read_bytes():
                return True
            errors = Path(f"/proc/{process.pid}/fd/2").readlink()
            return self.cell is not None and errors.is_relative_to(self.cell)
        return False

    def _look(self) -> set[str]:
        ours = self._processes()
        loops = loop_devices() - self._loops
        others = held_by_others({process.pid for process in ours}) if loops else set()
        return {
            *(f"process {process.pid}: {process.command}" for process in ours),
            *(f"loop device {loop}" for loop in loops if loop.split()[0] not in others),
            *(f"mount {line}" for line in self._mounted() - self._mounts),
            *(f"file {name}" for name in temporary_files() - self._files),
            *(f"file {name}" for name in self.temporary.iterdir()),
        }

    def left(self) -> set[str]:
        """Return what remains after `LIMIT_S` seconds and `LEAST_LOOKS` looks; return at once if
        nothing is left."""
        until = time.monotonic() + LIMIT_S
        stayed = self._look()
        looks = 1
        while stayed and (looks < LEAST_LOOKS or time.monotonic() < until):
            time.sleep(0.05)
            stayed &= self._look()
            looks += 1
        return stayed


class Runner:
    """A process that runs one cell with `script`, in its own session and with its own temporary
    folder."""

    def __init__(
        self,
        script: str,
        spelled: str,
        out: Path,
        linger_s: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        tag = f"FSCOST_RESIDUE={uuid.uuid4().hex}"
        temporary = out.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        self.watch = Watch(tag, temporary, out)
        name, _, value = tag.partition("=")
        python_path = os.pathsep.join(path for path in sys.path if path)
        self.out = out
        self.log = out.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *self.watch.inside,
                    sys.executable,
                    Path(__file__).with_name(script),
                    spelled,
                    out,
                    str(linger_s),
                ],
                env=os.environ
                | {name: value, "TMPDIR": str(temporary), "PYTHONPATH": python_path}
                | dict(environment or {}),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.log.read_text()

    def find(self, victim: str) -> int | None:
        """Return the process number of the victim, if it is alive; remember all descendants
        seen."""
        if victim == "runner":
            return self.process.pid
        members = family(self.process.pid)
        self.watch.known.update(members)
        # A process that one of them has forked has its command line until it calls exec, so the first
        # process is meant. A dead child of `init` need not end the cell: inspections may fail.
        found = [process for process in members if kind_of(process.command) == victim]
        return min(found, key=lambda each: (each.started, each.pid)).pid if found else None

    def until(self, words: str) -> None:
        """Wait until the runner prints these words or ends."""
        while words not in self.said() and self.process.poll() is None:
            self.find("")
            time.sleep(0.02)

    def kill(self, victim: str, after_s: float) -> bool:
        """Send SIGKILL after `after_s`, or as soon as the victim exists. Return False if the cell
        ended before."""
        begin = time.monotonic()
        while self.process.poll() is None:
            pid = self.find(victim)
            if pid is not None and time.monotonic() - begin >= after_s:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
            time.sleep(0.01)
        return False

    def ended(self, limit_s: float) -> bool:
        """True if the runner ended in time; otherwise it hung and was killed."""
        try:
            self.process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


def kind_of(command: str) -> str:
    words = command.split()
    program = Path(words[0]).name if words else ""
    if program == "fscost-disk":
        return "disk server"
    if program == "fscost-agent":
        return "agent" if words[1:2] == ["run"] else "init"
    if program == "qemu-system-x86_64":
        return "machine"
    return "workload" if program in ("sh", "dd", "rm", "sleep") else "other"


def run_whole(
    script: str, spelled: str, out: Path, environment: Mapping[str, str] | None = None
) -> float:
    """Run a cell without a kill; it must be done and leave nothing. Return its duration."""
    begin = time.monotonic()
    runner = Runner(script, spelled, out, 0, environment)
    assert runner.process.wait(timeout=300) == 0, runner.said()
    took_s = time.monotonic() - begin
    assert runner.said().splitlines()[-1].startswith("done"), runner.said()
    assert runner.watch.left() == set()
    return took_s
