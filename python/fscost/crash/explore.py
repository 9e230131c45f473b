"""Exploration of a recording: its states after power cuts, examined in programs of their own."""

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fscost import analyze, capture
from fscost.crash import fsynced
from fscost.crash.disks import Disk, family, uses
from fscost.crash.lost import WAYS, Lost, hows, summed
from fscost.crash.programs import MOST, answered
from fscost.crash.promises import UNNAMED, UNPROMISED
from fscost.crash.workloads import checked
from fscost.errors import HostError, InputError

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
_CALLS_MARGIN_NS = 200_000
"""The same for calls of any command, whose times come from the clock of the recording."""
_KEPT = re.compile(r"^kept (\d{1,19}) (\w{1,20}) (\d{1,9})$", re.MULTILINE)
_MOST_CONTROLS = 6
_PROMISES_PER_CUT = 3
"""Newest calls before a cut whose promises are read, if any command may have made them."""
_LOST_CUTS = 3
"""Instants at which disks are lost."""


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

    @property
    def margin_ns(self) -> int:
        """Time by which a promise must precede a cut, to count."""
        return _CALLS_MARGIN_NS if checked(self.workload) is None else MARGIN_NS


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
        return any(kind not in UNPROMISED for kind, _ in self.broken)


@dataclass(frozen=True)
class Exploration:
    """The outcomes of a recording's states. `tried`: states before equal images were left out.
    `promises`: how many the workload made."""

    outcomes: Sequence[Outcome]
    cuts: int
    tried: int
    promises: int = 0


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


def source(recording: Path, workload: str, how: Mounted, output: str) -> Source:
    """Read what a cell of the workload promised in its measured phases, and when. `output`: the
    text that its commands printed."""
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
        Disk(
            str(disk["name"]),
            int(disk["size_bytes"]),
            int(disk["logical_block_bytes"]),
            options.get(str(disk["name"]), ""),
        )
        for disk in info["disks"]
    ]
    begin_unix_ns = info["begin_unix_ns"]
    if not begin_unix_ns:
        raise InputError(f"{recording} has no times of this machine", "use --lab native")
    phases = [name for _, name, _ in marks]
    measured = analyze.measured(phases, [analyze.mark(*each) for each in marks])
    if not measured or phases[-1] in measured:
        raise InputError(f"{recording} has no measured phase that ended", "measure it again")
    places = [phases.index(measured[0]), phases.index(measured[-1]) + 1]
    begin_ns, end_ns = (marks[place][0] for place in places)
    if checked(workload) is None:
        promises = fsynced.heard(recording, measured)
    else:
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
        begin_ns,
        end_ns,
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
    """Examine the states of all cuts. Programs mount over `folder`, even that of the run."""
    crash = capture.crash(found.recording)
    cuts = crash.cuts(found.begin_ns, found.end_ns, limits.cuts)
    plan = _planned(crash, cuts, limits)
    known, unreadable = _reference(found, cuts, limits, folder)
    plan.states += unreadable
    outcomes = _examined(found, plan, limits, folder, (), known, say)
    return Exploration(outcomes, len(cuts), plan.tried, len(found.promises))


def examined(found: Source, device: str, state: State, folder: Path) -> Outcome:
    """Examine one state."""
    limits = Limits(device=device)
    known, _ = _reference(found, [state.at_ns], limits, folder)
    [outcome] = _examined(found, _Plan([state]), limits, folder, (), known)
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
        cuts = [at for at in cuts if at > end_ns + found.margin_ns]
        if not cuts:
            continue
        tried += 1
        plan = _planned(crash, cuts[-1:], limits)
        known, _ = _reference(found, cuts[-1:], limits, folder)
        outcomes = _examined(found, plan, limits, folder, numbers, known)
        noticed += any(_is_noticed(each) for each in outcomes)
    return Control(tried, noticed)


def _is_noticed(outcome: Outcome) -> bool:
    """True if a flush that was left out shows. A synced file without a name breaks no promise, but
    file systems that send all their flushes leave none."""
    is_unnamed = any(kind == UNNAMED for kind, _ in outcome.broken)
    return outcome.is_broken or is_unnamed or not outcome.mounts


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
    known: fsynced.Reference | None,
    say: Callable[[int, int], None] = lambda done, of: None,
) -> list[Outcome]:
    states = plan.states
    jobs = [_job(found, state) for state in states]
    answers = answered(_about(found, limits, without), jobs, folder, _programs(found), say)
    return [
        Outcome(
            state,
            told["mounts"],
            told["is_clean"],
            told["needs_repair"],
            _broken(known, state.at_ns - found.margin_ns, told),
            told["words"],
        )
        for state, told in zip(states, answers, strict=True)
    ]


def _broken(
    known: fsynced.Reference | None, by_ns: int, told: Mapping[str, Any]
) -> list[tuple[str, str]]:
    if known is not None and told["files"] is not None:
        return list(known.broken(by_ns, told["files"]))
    return [(str(kind), str(where)) for kind, where in told["broken"]]


def _reference(
    found: Source, cuts: Collection[int], limits: Limits, folder: Path
) -> tuple[fsynced.Reference | None, list[State]]:
    """Return what the calls of a command promised, as far as cuts at these instants need it, and
    the states in which nothing was lost but that a mount alone does not recover."""
    if checked(found.workload) is not None:
        return None, []
    made: dict[int, list[int]] = {}
    for at_ns, _, inode in sorted(found.promises):
        made.setdefault(inode, []).append(at_ns)
    ends = fsynced.instants(made, sorted(cuts), found.margin_ns, _PROMISES_PER_CUT)
    instants = sorted({found.begin_ns, *ends, *cuts, found.end_ns})
    crash = capture.crash(found.recording)
    states = []
    for at_ns in instants:
        pending = len(crash.pending(at_ns, limits.device))
        states.append(State(at_ns, "all", tuple(range(pending)), pending))
    jobs = [_job(found, state) for state in states]
    answers = answered(_about(found, limits, ()), jobs, folder, _programs(found))
    readable = [told["mounts"] and not told["needs_repair"] for told in answers]
    if not readable[0]:
        raise HostError(
            f"{found.recording} cannot be mounted as it was before the command ran",
            "see `fscost crash` with --workload files for this profile",
        )
    unreadable = [
        state for state, is_readable in zip(states, readable, strict=True) if not is_readable
    ]
    known = [at_ns for at_ns, is_readable in zip(instants, readable, strict=True) if is_readable]
    wanted = set(ends) & set(known)
    promises = {inode: [at for at in ats if at in wanted] for inode, ats in made.items()}
    snapshots = [
        told["files"] for told, is_readable in zip(answers, readable, strict=True) if is_readable
    ]
    return fsynced.Reference(known, snapshots, promises), unreadable


def lost(
    found: Source,
    limits: Limits,
    folder: Path,
    say: Callable[[int, int], None] = lambda done, of: None,
) -> list[Lost]:
    """Lose each disk beside the main one (of btrfs, each disk) at several instants, in each way in
    which it can be lost, and try each documented way back."""
    ways = WAYS[family(found.type)]
    disks = [number for number in range(len(found.disks)) if number or found.type == "btrfs"]
    losses = list(itertools.product(disks, hows(family(found.type)), range(len(ways))))
    states = _few(found, limits)
    jobs = [
        {
            **_job(found, state),
            "lost": {"number": number, "how": how, "way": way, "begin_ns": found.begin_ns},
        }
        for number, how, way in losses
        for state in states
    ]
    answers = answered(_about(found, limits, ()), jobs, folder, _programs(found), say)
    known, _ = _reference(found, {state.at_ns for state in states}, limits, folder)
    for job, told in zip(jobs, answers, strict=True):
        told["broken"] = _broken(known, job["at_ns"] - found.margin_ns, told)
    return [
        summed(
            found.disks[number].name,
            how,
            ways[way],
            answers[place * len(states) : (place + 1) * len(states)],
        )
        for place, (number, how, way) in enumerate(losses)
    ]


def _few(found: Source, limits: Limits) -> list[State]:
    """Return few states: at each instant, nothing and everything that was pending survived."""
    crash = capture.crash(found.recording)
    states = []
    for at_ns in crash.cuts(found.begin_ns, found.end_ns, _LOST_CUTS):
        pending = len(crash.pending(at_ns, limits.device))
        states.append(State(at_ns, "none", (), pending))
        if pending:
            states.append(State(at_ns, "all", tuple(range(pending)), pending))
    return states


def _job(found: Source, state: State) -> dict[str, Any]:
    is_heard = checked(found.workload) is None
    kept = {} if is_heard else kept_at(found.promises, state.at_ns)
    return {"at_ns": state.at_ns, "kept": list(state.kept), "kept_promises": kept}


def _about(found: Source, limits: Limits, without: Sequence[int]) -> dict[str, Any]:
    return {
        "recording": str(found.recording),
        "workload": found.workload,
        "type": found.type,
        "options": found.options,
        "disks": [asdict(disk) for disk in found.disks],
        "device": limits.device,
        "without": list(without),
    }


def _programs(found: Source) -> int:
    # btrfs tells its disks apart by an identity that all states share: one at a time.
    return 1 if found.type == "btrfs" else MOST
