"""Exploration of a recording: its states after power cuts, examined in programs of their own."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any

from fscost import capture
from fscost.crash.disks import Disk, uses
from fscost.crash.promises import EMPTIED
from fscost.errors import HostError, InputError
from fscost.host import interrupts, tool

if TYPE_CHECKING:
    from fscost._native import Crash

DEVICES = {
    "reorder-4k": "pending 4 KiB blocks reach the medium in any order",
    "reorder-512": "as reorder-4k, with blocks torn into sectors of 512 bytes",
    "in-order": "pending blocks reach the medium in the order in which they came",
    "power-loss-protected": "only requests in flight are lost",
}
"""Models of what a device keeps when the power goes."""
TYPES = ("ext2", "ext3", "ext4", "xfs", "btrfs")
"""File systems whose states are mounted here."""
MARGIN_NS = 2_000_000
"""Time by which a promise must precede a cut. The two clocks run apart by less, and each promise is
followed by a longer pause."""
_KEPT = re.compile(r"^kept (\d{1,19}) (\w{1,20}) (\d{1,9})$", re.MULTILINE)
_MOST_CONTROLS = 6
_WORKERS = 3 * (os.cpu_count() or 1)
"""Programs that examine states. Most of their time, they wait for mounts to settle."""


@dataclass(frozen=True)
class Source:
    """A recording of a workload. `promises`: instant, kind and number of each, in order; `begin_ns`
    and `end_ns`: the measured phase. `disks`: in the order of the recording."""

    recording: Path
    workload: str
    type: str
    options: str
    disks: Sequence[Disk]
    promises: Sequence[tuple[int, str, int]]
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class State:
    """One state: the cut, the pending units that survived, and how they were chosen."""

    at_ns: int
    how: str
    kept: Sequence[int]
    pending: int


@dataclass(frozen=True)
class Outcome:
    """What a mount and a check found in a state. `broken`: kind and place of each broken
    promise. `words`: what programs said that failed."""

    state: State
    mounts: bool
    is_clean: bool
    needs_repair: bool
    broken: Sequence[tuple[str, str]]
    words: Sequence[str] = ()

    @property
    def is_broken(self) -> bool:
        """True if a call's promise is broken."""
        return any(kind != EMPTIED for kind, _ in self.broken)


@dataclass(frozen=True)
class Exploration:
    """The outcomes of a recording's states. `tried`: states before equal images were left out."""

    outcomes: Sequence[Outcome]
    cuts: int
    tried: int


@dataclass(frozen=True)
class Control:
    """How many flushes were left out, one at a time, and how many of these were noticed."""

    tried: int
    noticed: int


@dataclass(frozen=True)
class Limits:
    """How many states to examine."""

    cuts: int = 40
    states_per_cut: int = 24
    seed: int = 1
    device: str = next(iter(DEVICES))


@dataclass
class _Plan:
    states: list[State] = field(default_factory=list)
    tried: int = 0


@dataclass(frozen=True)
class Mounted:
    """How a profile was made and mounted: what its states need."""

    type: str
    mkfs_flags: Sequence[str]
    options: str


def source(recording: Path, workload: str, how: Mounted, output: str, phase: str) -> Source:
    """Read what a cell of the workload promised, and when. `output`: the text that its commands
    printed."""
    if how.type not in TYPES:
        raise InputError(
            f"this kernel cannot examine states of {how.type or 'no file system'}",
            f"name profiles of {', '.join(TYPES)}",
        )
    with capture.opened(recording) as opened:
        info, marks = opened.info(), opened.marks()
    names = [str(disk["name"]) for disk in info["disks"]]
    options = uses(how.type, how.mkfs_flags, names)
    if unknown := [name for name in names[1:] if name not in options]:
        raise InputError(
            f"{recording}: nothing says how to mount disk {unknown[0]!r}",
            "name profiles without that disk",
        )
    disks = [
        Disk(str(disk["name"]), int(disk["logical_block_bytes"]), options.get(disk["name"], ""))
        for disk in info["disks"]
    ]
    begin_unix_ns = info["begin_unix_ns"]
    if not begin_unix_ns:
        raise InputError(f"{recording} has no times of this machine", "use --lab native")
    bounds = [at_ns for at_ns, _, _ in marks]
    phases = [name for _, name, _ in marks]
    if phase not in phases or phases.index(phase) + 1 >= len(phases):
        raise InputError(f"{recording} has no phase {phase!r}", "run `fscost crash` again")
    place = phases.index(phase)
    promises = [
        (int(at_ns) - begin_unix_ns, kind, int(number))
        for at_ns, kind, number in _KEPT.findall(output)
    ]
    return Source(
        recording,
        workload,
        how.type,
        how.options,
        disks,
        promises,
        bounds[place],
        bounds[place + 1],
    )


def kept_at(promises: Sequence[tuple[int, str, int]], at_ns: int) -> dict[str, int]:
    """Return the newest promise of each kind that was made `MARGIN_NS` before an instant."""
    found: dict[str, int] = {}
    for made_ns, kind, number in promises:
        if made_ns + MARGIN_NS <= at_ns:
            found[kind] = max(found.get(kind, 0), number)
    return found


def explore(
    found: Source,
    limits: Limits,
    folder: Path,
    say: Callable[[int, int], None] = lambda done, of: None,
) -> Exploration:
    """Examine the states of all cuts. The programs mount over `folder`, each in a namespace of its
    own, so that SIGKILL leaves nothing behind: the folder may be that of the run."""
    crash = capture.crash(found.recording)
    cuts = crash.cuts(found.begin_ns, found.end_ns, limits.cuts)
    plan = _planned(crash, cuts, limits)
    outcomes = _examined(found, plan, limits, folder, (), say)
    return Exploration(outcomes, len(cuts), plan.tried)


def examined(found: Source, device: str, state: State, folder: Path) -> Outcome:
    """Examine one state."""
    plan = _Plan([state])
    [outcome] = _examined(found, plan, Limits(device=device), folder, (), lambda done, of: None)
    return outcome


def control(found: Source, limits: Limits, folder: Path) -> Control:
    """Leave one flush at a time out of the recording, as if the file system had not sent it. A
    check that does not notice a missing barrier says nothing about a file system."""
    flushes = _flushes(found)
    noticed = tried = 0
    for without in _before_promises(found, flushes)[:_MOST_CONTROLS]:
        end_ns = max(each.end_ns for each in without)
        next_ns = min((each.end_ns for each in flushes if each.end_ns > end_ns), default=None)
        numbers = [each.event for each in without]
        crash = capture.crash(found.recording, numbers)
        cuts = crash.cuts(end_ns, found.end_ns if next_ns is None else next_ns, 1 << 16)
        cuts = [at for at in cuts if at > end_ns + MARGIN_NS]
        if not cuts:
            continue
        tried += 1
        plan = _planned(crash, cuts[-1:], limits)
        outcomes = _examined(found, plan, limits, folder, numbers, lambda done, of: None)
        noticed += any(each.is_broken or not each.mounts for each in outcomes)
    return Control(tried, noticed)


@dataclass(frozen=True)
class _Flush:
    event: int
    disk: str
    end_ns: int


def _flushes(found: Source) -> list[_Flush]:
    flushes = []
    for batch in capture.requests(found.recording):
        columns = (
            batch.column(name).to_pylist() for name in ("event", "disk", "op", "complete_ns")
        )
        for event, disk, op, complete_ns in zip(*columns, strict=True):
            if op == "flush" and found.begin_ns <= complete_ns < found.end_ns:
                flushes.append(_Flush(event, disk, complete_ns))
    return flushes


def _before_promises(found: Source, flushes: Sequence[_Flush]) -> list[list[_Flush]]:
    """Return the last flush before each promise, spread over the workload. On btrfs, the last of
    each disk: another disk may hold a copy of what one disk has lost."""
    chosen: list[list[_Flush]] = []
    for made_ns, _, _ in found.promises:
        before = sorted(
            (each for each in flushes if each.end_ns <= made_ns), key=lambda each: each.end_ns
        )
        last = before[-1:]
        if found.type == "btrfs":
            last = list({each.disk: each for each in before}.values())
        if last and last not in chosen:
            chosen.append(last)
    step = max(1, len(chosen) // _MOST_CONTROLS)
    return chosen[::step]


def _planned(crash: "Crash", cuts: Sequence[int], limits: Limits) -> _Plan:
    """Choose the states of each cut, without those whose image equals one at the same promises."""
    plan = _Plan()
    seen = set()
    for at_ns in cuts:
        pending = len(crash.pending(at_ns, limits.device))
        states = crash.states(at_ns, limits.device, limits.states_per_cut, limits.seed)
        plan.tried += len(states)
        for how, kept, identity in states:
            if identity not in seen:
                seen.add(identity)
                plan.states.append(State(at_ns, how, kept, pending))
    return plan


def _examined(
    found: Source,
    plan: _Plan,
    limits: Limits,
    folder: Path,
    without: Sequence[int],
    say: Callable[[int, int], None],
) -> list[Outcome]:
    # btrfs tells its disks apart by an identity that all states share: one at a time.
    workers = 1 if found.type == "btrfs" else _WORKERS
    about = {
        "recording": str(found.recording),
        "workload": found.workload,
        "type": found.type,
        "options": found.options,
        "disks": [asdict(disk) for disk in found.disks],
        "device": limits.device,
        "without": list(without),
    }
    waiting: Queue[tuple[int, State]] = Queue()
    for number, state in enumerate(plan.states):
        waiting.put((number, state))
    outcomes: dict[int, Outcome] = {}
    lock = threading.Lock()
    is_stopped = threading.Event()

    def work() -> None:
        with _program(about, folder) as (jobs, answers):
            while not is_stopped.is_set():
                try:
                    number, state = waiting.get_nowait()
                except Empty:
                    return
                kept = kept_at(found.promises, state.at_ns)
                outcome = _asked(jobs, answers, state, kept)
                with lock:
                    outcomes[number] = outcome
                    say(len(outcomes), len(plan.states))

    with ThreadPoolExecutor(workers) as pool:
        try:
            for each in [pool.submit(work) for _ in range(workers)]:
                each.result()
        except BaseException:
            is_stopped.set()
            raise
    return [outcomes[number] for number in sorted(outcomes)]


def _asked(jobs: IO[str], answers: IO[str], state: State, kept: Mapping[str, int]) -> Outcome:
    job = {"at_ns": state.at_ns, "kept": list(state.kept), "kept_promises": dict(kept)}
    try:
        jobs.write(f"{json.dumps(job)}\n")
        jobs.flush()
        answer = answers.readline()
    except OSError:
        answer = ""
    if not answer:
        raise HostError("the program that examines states has ended", "see the messages above")
    told = json.loads(answer)
    broken = [(str(kind), str(where)) for kind, where in told["broken"]]
    flags = told["mounts"], told["is_clean"], told["needs_repair"]
    return Outcome(state, *flags, broken, told["words"])


@contextlib.contextmanager
def _program(about: Mapping[str, Any], folder: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    unshare = tool("unshare")
    if unshare is None:
        raise HostError("unshare is missing", "apt install util-linux")
    words = [str(unshare), "--mount", "--propagation", "private", "--"]
    words += [sys.executable, "-P", "-m", "fscost.crash.examine"]
    # Ctrl-C is for the caller: it lets the program finish its state and unmount.
    with (
        interrupts.held() as release,
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            release()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{json.dumps({**about, 'folder': str(folder)})}\n")
            process.stdin.flush()
            yield process.stdin, process.stdout
            process.stdin.close()
            process.wait()
        finally:
            process.kill()
