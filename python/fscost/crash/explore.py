"""Exploration of a recording: its states after power cuts, examined in programs of their own."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fscost import analyze, capture
from fscost.crash import fsynced, sizes
from fscost.crash.disks import Disk, uses
from fscost.crash.families import family
from fscost.crash.lost import ARRAY
from fscost.crash.placed import made
from fscost.crash.programs import Answered, Made, Say
from fscost.crash.promises import UNNAMED, UNPROMISED, UNREADABLE
from fscost.crash.workloads import checked
from fscost.errors import HostError, InputError

if TYPE_CHECKING:
    from fscost._native import Crash

DEVICES = {
    "reorder-4k": "pending 4 KiB blocks reach the medium in any order",
    "reorder-512": "as reorder-4k, with blocks torn into sectors of 512 bytes",
    "in-order": "pending blocks reach each disk's medium in the order in which they came",
    "power-loss-protected": "only requests in flight are lost",
}
"""Models of what a device keeps when the power goes."""
TYPES = ("ext2", "ext3", "ext4", "xfs", "btrfs")
"""File systems whose states this kernel mounts; guests mount others."""
_NUMBERLESS = ("vfat", "exfat")
"""File systems without inode numbers on the disk (fs/fat/inode.c, fs/exfat/inode.c, iunique)."""
_MOST_CONTROLS = 6
_PROMISES_PER_CUT = 3
"""Newest calls before a cut whose promises are read, if any command may have made them."""
_MOST_PLAN_BYTES = 512 << 20
"""Memory for the numbers of all states of a recording."""
MOST_PLACE = 4096
"""Characters that are kept of the place of a broken promise."""
SHARED = ("btrfs", ARRAY)
"""Families whose disks are equal, so that each can be lost, and may hold what another one has."""


def silent(done: int, of: int) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Source:
    """A recording of a workload. `promises`: instant, kind and number of each, in order; `begin_ns`
    and `end_ns`: the measured phase. `disks`: in the order of the recording. `margin_ns`: time by
    which a promise must precede a cut, to count. `unknown_calls`: calls of unknown promises."""

    recording: Path
    workload: str
    type: str
    options: str
    disks: Sequence[Disk]
    promises: Sequence[tuple[int, str, int]]
    begin_ns: int
    end_ns: int
    margin_ns: int
    mkfs_flags: Sequence[str] = ()
    unknown_calls: int = 0

    @property
    def family(self) -> str:
        """What decides how a disk is lost, and which ways lead back."""
        return ARRAY if any(disk.is_member for disk in self.disks) else family(self.type)


@dataclass(frozen=True)
class State:
    """One state: the cut, the pending units that survived, and how they were chosen. `without`:
    the flushes that were left out, for a control."""

    at_ns: int
    how: str
    kept: Sequence[int]
    pending: int
    without: Sequence[int] = ()


@dataclass(frozen=True)
class Outcome:
    """What a mount and a check found in a state. `broken`: each kind of broken promise, and the
    place of the first one. `words`: what programs said that failed. `stops_kernel`: a guest
    panicked or hung. `repair_s`: how long fsck took to repair it."""

    state: State
    mounts: bool
    is_clean: bool
    needs_repair: bool
    broken: Sequence[tuple[str, str]]
    words: Sequence[str] = ()
    stops_kernel: bool = False
    repair_s: float = 0

    @property
    def is_silent(self) -> bool:
        """True if a promise is broken, and nothing says so: a read returns other data, or a file
        is gone, and no program found an error."""
        if not self.mounts or not self.is_clean or self.needs_repair or self.words:
            return False
        return self.is_broken and all(kind != UNREADABLE for kind, _ in self.broken)

    @property
    def is_broken(self) -> bool:
        """True if a call's promise is broken."""
        return any(kind not in UNPROMISED for kind, _ in self.broken)


@dataclass(frozen=True)
class Exploration:
    """The outcomes of a recording's states. `tried`: states before equal images were left out.
    `promises`: how many the workload made, without those of `unknown_calls`."""

    outcomes: Sequence[Outcome]
    cuts: int
    tried: int
    promises: int = 0
    unknown_calls: int = 0


@dataclass(frozen=True)
class Control:
    """How many flushes were left out, one at a time, and how many of these were noticed, in how
    many states."""

    tried: int
    noticed: int
    states: int = 0


@dataclass(frozen=True)
class Limits:
    """How many states to examine. `again`: second cuts for each state whose recovery is cut."""

    cuts: int = 40
    states_per_cut: int = 24
    seed: int = 1
    device: str = next(iter(DEVICES))
    again: int = 0


@dataclass
class _Plan:
    states: list[State] = field(default_factory=list)
    tried: int = 0


@dataclass(frozen=True)
class Mounted:
    """How a profile was made and mounted: what its states need. `members`: how many of its first
    disks are those of an array of md."""

    type: str
    mkfs_flags: Sequence[str]
    options: str
    members: int = 0


def source(recording: Path, workload: str, how: Mounted, output: str) -> Source:
    """Read what a cell of the workload promised in its measured phases, and when. `output`: the
    text that its commands printed."""
    if how.type in _NUMBERLESS and checked(workload) is None:
        raise InputError(
            f"{how.type} gives its files new inode numbers at each mount, so that files cannot be"
            " followed from their fsync calls into a state",
            "examine it with --workload files or sqlite",
        )
    with capture.opened(recording) as opened:
        info, marks = opened.info(), opened.marks()
    names = [str(disk["name"]) for disk in info["disks"]]
    if not 0 <= how.members <= len(names):
        raise InputError(f"{recording} has other disks than its array", "measure it again")
    others = names[how.members or 1 :]
    options = uses(how.type, how.mkfs_flags, [names[0], *others])
    if unknown := [name for name in others if name not in options]:
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
            place < how.members,
        )
        for place, disk in enumerate(info["disks"])
    ]
    phases = [name for _, name, _ in marks]
    measured = analyze.measured(phases, [analyze.mark(*each) for each in marks])
    if not measured or phases[-1] in measured:
        raise InputError(f"{recording} has no measured phase that ended", "measure it again")
    places = [phases.index(measured[0]), phases.index(measured[-1]) + 1]
    begin_ns, end_ns = (marks[place][0] for place in places)
    promises, margin_ns, unknown_calls = made(recording, workload, measured, output)
    return Source(
        recording,
        workload,
        how.type,
        how.options,
        disks,
        promises,
        begin_ns,
        end_ns,
        margin_ns,
        how.mkfs_flags,
        unknown_calls,
    )


def kept_at(promises: Sequence[tuple[int, str, int]], at_ns: int, margin_ns: int) -> dict[str, int]:
    """Return the newest promise of each kind that was made `margin_ns` before an instant."""
    found: dict[str, int] = {}
    for made_ns, kind, number in promises:
        if made_ns + margin_ns <= at_ns:
            found[kind] = max(found.get(kind, 0), number)
    return found


def explore(
    found: Source,
    limits: Limits,
    answered: Answered,
    say: Say = silent,
) -> Exploration:
    """Examine the states of all cuts."""
    sizes.check(found.recording, limits.device)
    crash = capture.crash(found.recording)
    cuts = crash.cuts(found.begin_ns, found.end_ns, limits.cuts)
    plan = planned(crash, cuts, limits)
    known, unreadable = reference(found, cuts, limits, answered)
    plan.states += unreadable
    outcomes = _examined(found, plan, limits, answered, known, say)
    promises = len(found.promises)
    return Exploration(outcomes, len(cuts), plan.tried, promises, found.unknown_calls)


def examined(found: Source, device: str, state: State, answered: Answered) -> Outcome:
    """Examine one state."""
    [outcome] = examined_all(found, device, [state], answered)
    return outcome


def examined_all(
    found: Source,
    device: str,
    states: Sequence[State],
    answered: Answered,
    known: fsynced.Reference | None = None,
) -> list[Outcome]:
    """Examine states. `known`: what calls had promised, if that is known already."""
    limits = Limits(device=device)
    if known is None:
        known, _ = reference(found, {state.at_ns for state in states}, limits, answered)
    return _examined(found, _Plan(list(states)), limits, answered, known)


def control(found: Source, limits: Limits, answered: Answered) -> Control:
    """Leave one flush at a time out of the recording, as if the file system had not sent it. A
    check that does not notice a missing barrier says nothing about a file system."""
    flushes = _flushes(found)
    plan, of_flush = _Plan(), []
    for without in _before_promises(found, flushes)[:_MOST_CONTROLS]:
        end_ns = max(each.end_ns for each in without)
        next_ns = min((each.end_ns for each in flushes if each.end_ns > end_ns), default=None)
        numbers = tuple(each.event for each in without)
        crash = capture.crash(found.recording, numbers)
        cuts = crash.cuts(end_ns, found.end_ns if next_ns is None else next_ns, 1 << 16)
        cuts = [at for at in cuts if at > end_ns + found.margin_ns]
        if not cuts:
            continue
        states = planned(crash, cuts[-1:], limits, numbers).states
        plan.states += states
        of_flush.append(len(states))
    known, _ = reference(found, {state.at_ns for state in plan.states}, limits, answered)
    outcomes = iter(_examined(found, plan, limits, answered, known))
    noticed = [[_is_noticed(next(outcomes)) for _ in range(states)] for states in of_flush]
    return Control(len(noticed), sum(any(each) for each in noticed), len(plan.states))


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
    """Return the last flush before each promise, spread over the workload. On btrfs and md, the
    last of each disk: another disk may hold a copy of what one disk has lost."""
    chosen: list[list[_Flush]] = []
    for made_ns, _, _ in found.promises:
        before = sorted(
            (each for each in flushes if each.end_ns <= made_ns), key=lambda each: each.end_ns
        )
        last = before[-1:]
        if found.family in SHARED:
            last = list({each.disk: each for each in before}.values())
        if last and last not in chosen:
            chosen.append(last)
    step = max(1, len(chosen) // _MOST_CONTROLS)
    return chosen[::step]


def planned(
    crash: "Crash", cuts: Sequence[int], limits: Limits, without: Sequence[int] = ()
) -> _Plan:
    """Choose the states of each cut. An image that several cuts may leave is a state of the last
    one, by which calls have promised most."""
    device = limits.device
    states = crash.enumeration(device, _MOST_PLAN_BYTES)
    found: dict[int, State] = {}
    for at_ns in sorted(cuts):
        pending = len(crash.pending(at_ns, device))
        try:
            added = states.add(at_ns, limits.states_per_cut, limits.seed)
        except ValueError as error:
            raise InputError(str(error), "give fewer --cuts or --states") from error
        for number, how, kept in added:
            found[number] = State(at_ns, how, array("I", kept), pending, without)
    tried, _ = states.counts()
    return _Plan(sorted(found.values(), key=lambda state: state.at_ns), tried)


def _examined(
    found: Source,
    plan: _Plan,
    limits: Limits,
    answered: Answered,
    known: fsynced.Reference | None,
    say: Say = silent,
) -> list[Outcome]:
    def outcome(place: int, told: Mapping[str, Any]) -> Outcome:
        state = plan.states[place]
        return outcome_of(known, state, state.at_ns - found.margin_ns, told)

    jobs = Made(partial(job_of, found), plan.states)
    return answered(about_of(found, limits), jobs, say, outcome)


def outcome_of(
    known: fsynced.Reference | None, state: State, by_ns: int, told: Mapping[str, Any]
) -> Outcome:
    """Return what was found in a state that must hold what was promised by an instant."""
    return Outcome(
        state,
        told["mounts"],
        told["is_clean"],
        told["needs_repair"],
        broken(known, by_ns, told),
        told["words"],
        told.get("stops_kernel", False),
        told.get("repair_s", 0.0),
    )


def broken(
    known: fsynced.Reference | None, by_ns: int, told: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return each kind of promise that a state has broken by an instant, and the first place."""
    pairs = told["broken"]
    if known is not None and told["files"] is not None:
        pairs = known.broken(by_ns, told["files"])
    first: dict[str, str] = {}
    for kind, where in pairs:
        first.setdefault(str(kind), str(where)[:MOST_PLACE])
    return list(first.items())


def reference(
    found: Source, cuts: Collection[int], limits: Limits, answered: Answered
) -> tuple[fsynced.Reference | None, list[State]]:
    """Return what the calls of a command promised, as far as cuts at these instants need it, and
    the states in which nothing was lost but that a mount alone does not recover."""
    sizes.check(found.recording, limits.device)
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
        states.append(State(at_ns, "all", range(pending), pending))
    jobs = Made(partial(job_of, found), states)
    album = fsynced.Album()

    def shown(_: int, told: Mapping[str, Any]) -> tuple[bool, fsynced.Snapshot | None]:
        is_sound = told["mounts"] and told["is_clean"] and told["files"] is not None
        needs_repair = not told["mounts"] or told["needs_repair"]
        return needs_repair, album.kept(told["files"]) if is_sound else None

    answers = answered(about_of(found, limits), jobs, silent, shown)
    found_by_then = [
        (at_ns, files)
        for at_ns, (_, files) in zip(instants, answers, strict=True)
        if files is not None
    ]
    if not found_by_then or found_by_then[0][0] != found.begin_ns:
        raise HostError(
            f"{found.recording} cannot be mounted as it was before the command ran",
            "see `fscost crash` with --workload files for this profile",
        )
    unreadable = [
        state for state, (needs_repair, _) in zip(states, answers, strict=True) if needs_repair
    ]
    # A repair is a part of the recovery: what was promised is there after it.
    known, snapshots = zip(*found_by_then, strict=True)
    wanted = set(ends) & set(known)
    promises = {inode: [at for at in ats if at in wanted] for inode, ats in made.items()}
    return fsynced.Reference(known, snapshots, promises), unreadable


def job_of(found: Source, state: State) -> dict[str, Any]:
    """Return the job of an examiner."""
    is_heard = checked(found.workload) is None
    kept = {} if is_heard else kept_at(found.promises, state.at_ns, found.margin_ns)
    return {
        "at_ns": state.at_ns,
        "kept": list(state.kept),
        "without": list(state.without),
        "kept_promises": kept,
    }


def about_of(found: Source, limits: Limits) -> dict[str, Any]:
    """Return what all states of a recording share."""
    return {
        "recording": str(found.recording),
        "workload": found.workload,
        "type": found.type,
        "options": found.options,
        "disks": [asdict(disk) for disk in found.disks],
        "device": limits.device,
    }
