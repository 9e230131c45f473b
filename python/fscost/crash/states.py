"""States in which a promise was broken, kept in the run's folder: `crash.json`."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from fscost import files, typed
from fscost.crash.again import Again, Numbers
from fscost.crash.explore import DEVICES, Exploration, State
from fscost.crash.minimise import Minimised
from fscost.crash.verdict import Verdict, faults, judged
from fscost.crash.workloads import COMMAND, named
from fscost.errors import InputError

FILE = "crash.json"
_LARGEST_BYTES = 32 << 20
_MOST_STATES = 1000
_MOST_KEPT = 1 << 20
_REMEDY = "examine the run again: `fscost crash RUN`"


@dataclass(frozen=True)
class Broken(typed.Table):
    """A state with faults. `number`: its place among the states of its profile."""

    number: typed.Count
    at_ns: typed.Count
    how: str
    kept: Annotated[typed.Tuple[typed.Count], Field(max_length=_MOST_KEPT)]
    pending: typed.Count
    faults: typed.Tuple[str]

    @property
    def state(self) -> State:
        """The state itself."""
        return State(self.at_ns, self.how, self.kept, self.pending)


@dataclass(frozen=True)
class BrokenAgain(typed.Table):
    """A second state with faults, after a cut during the recovery of state `number`; its place is
    among the second states of that one (`crash/again.py`)."""

    number: typed.Count
    place: typed.Count
    at_ns: typed.Count
    first_how: str
    first_kept: Annotated[typed.Tuple[typed.Count], Field(max_length=_MOST_KEPT)]
    first_pending: typed.Count
    cut: typed.Count
    how: str
    kept: Annotated[typed.Tuple[typed.Count], Field(max_length=_MOST_KEPT)]
    pending: typed.Count
    traffic: str
    faults: typed.Tuple[str]

    @property
    def numbers(self) -> Numbers:
        """What rebuilds it."""
        first = State(self.at_ns, self.first_how, self.first_kept, self.first_pending)
        numbers = (self.number, self.place, first, self.cut, self.how, self.kept)
        return Numbers(*numbers, self.pending, self.traffic)


@dataclass(frozen=True)
class Fewest(typed.Table):
    """State `number`, minimised: it breaks the same promise with as few lost blocks. `kept`: what
    it keeps; `lost`, `lost_before`: how many blocks it loses, and did; `writes`: what they are.
    `is_minimal`: each is needed; otherwise the trials ran out."""

    number: typed.Count
    kept: Annotated[typed.Tuple[typed.Count], Field(max_length=_MOST_KEPT)]
    lost: typed.Count
    lost_before: typed.Count
    trials: typed.Count
    is_minimal: bool
    writes: typed.Tuple[str]


@dataclass(frozen=True)
class Reduced(typed.Table):
    """The fewest operations that have the same fault as state `number`: of `workload`, in each of
    `rounds`, of `before` in all. `folder`: their run, below that of this one, and `state`: its
    state with the fault. Both, and `workload`, are empty if none of the `trials` had the fault."""

    number: typed.Count
    workload: str
    operations: typed.Tuple[str]
    rounds: typed.Count
    before: typed.Count
    trials: typed.Count
    folder: str
    state: typed.Count


@dataclass(frozen=True)
class Findings(typed.Table):
    """What an exploration of a run found, by profile. `states`: at most 1,000 with faults each;
    `examined`: how many there were."""

    workload: str
    device: str
    verdicts: typed.Dict[str] = field(default_factory=dict)
    examined: typed.Dict[typed.Count] = field(default_factory=dict)
    states: typed.Dict[typed.Tuple[Broken]] = field(default_factory=dict)
    again: typed.Dict[typed.Tuple[BrokenAgain]] = field(default_factory=dict)
    minimised: typed.Dict[Fewest] = field(default_factory=dict)
    reduced: typed.Dict[Reduced] = field(default_factory=dict)


def findings(
    workload: str,
    device: str,
    explored: Mapping[str, Exploration],
    again: Mapping[str, Again] = MappingProxyType({}),
    minimised: Mapping[str, Fewest] = MappingProxyType({}),
    reduced: Mapping[str, Reduced] = MappingProxyType({}),
) -> Findings:
    """Return the states with faults of each profile."""
    return Findings(
        workload,
        device,
        {profile: judged(found).verdict.value for profile, found in explored.items()},
        {profile: len(found.outcomes) for profile, found in explored.items()},
        {profile: _broken(found) for profile, found in explored.items()},
        {profile: _broken_again(found) for profile, found in again.items()},
        dict(minimised),
        dict(reduced),
    )


def _broken(found: Exploration) -> tuple[Broken, ...]:
    broken: list[Broken] = []
    for number, outcome in enumerate(found.outcomes, start=1):
        if (words := faults(outcome)) and len(broken) < _MOST_STATES:
            state = outcome.state
            broken.append(
                Broken(number, state.at_ns, state.how, tuple(state.kept), state.pending, words)
            )
    return tuple(broken)


def _broken_again(found: Again) -> tuple[BrokenAgain, ...]:
    broken = []
    for second in found.broken[:_MOST_STATES]:
        each = second.numbers
        first = each.first
        broken.append(
            BrokenAgain(
                each.number,
                each.place,
                first.at_ns,
                first.how,
                tuple(first.kept),
                first.pending,
                each.cut,
                each.how,
                tuple(each.kept),
                each.pending,
                each.traffic,
                tuple(second.faults),
            )
        )
    return tuple(broken)


def fewest(number: int, less: Minimised, writes: Sequence[str]) -> Fewest:
    """Return a minimised state, to keep it."""
    kept = tuple(less.outcome.state.kept)
    counts = (less.lost, less.lost_before, less.trials)
    return Fewest(number, kept, *counts, less.is_minimal, tuple(writes))


def unexamined() -> Findings:
    """Return the findings of a run whose recordings nobody examined yet."""
    return Findings(COMMAND, next(iter(DEVICES)))


def save(folder: Path, found: Findings) -> None:
    """Keep the findings in the run's folder, in place of earlier ones."""
    with files.replacing(folder / FILE, follow=False) as out:
        out.write(json.dumps(asdict(found), separators=(",", ":")).encode())


def load(folder: Path) -> Findings:
    """Read the findings of a run. Its folder is untrusted."""
    path = folder / FILE
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LARGEST_BYTES)
    except OSError as error:
        raise InputError(
            f"{folder} is no run of `fscost crash`: {FILE}: {error.strerror}",
            "name the folder that `fscost crash` made",
        ) from error
    if content is None:
        raise InputError(f"{path} is larger than {_LARGEST_BYTES >> 20} MiB", _REMEDY)
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}", _REMEDY) from error
    try:
        found = typed.read(Findings, value)
    except typed.InvalidError as error:
        raise InputError(f"{path}: {error}", _REMEDY) from error
    if found.workload != COMMAND:
        try:
            named(found.workload)
        except InputError as error:
            raise InputError(f"{path}: {error.what}", error.remedy) from error
    _check_known(path, [found.device], DEVICES)
    _check_known(path, found.verdicts.values(), [each.value for each in Verdict])
    return found


def _check_known(path: Path, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{path}: {name!r} is unknown", f"one of: {', '.join(known)}")


def chosen(found: Findings, profile: str, number: int) -> Broken:
    """Return a state by its number."""
    states: Sequence[Broken] = found.states.get(profile, ())
    for each in states:
        if each.number == number:
            return each
    numbers = ", ".join(str(each.number) for each in states[:8])
    raise InputError(
        f"{profile} has no state {number} with a fault",
        f"its first are {numbers}" if numbers else "it has none at all: its verdict is SAFE",
    )


def chosen_again(found: Findings, profile: str, number: int, place: int) -> BrokenAgain:
    """Return a second state by its numbers."""
    states: Sequence[BrokenAgain] = found.again.get(profile, ())
    for each in states:
        if (each.number, each.place) == (number, place):
            return each
    numbers = ", ".join(f"{each.number}.{each.place}" for each in states[:8])
    raise InputError(
        f"{profile} has no second state {number}.{place} with a fault",
        f"its first are {numbers}" if numbers else "it has none at all: see --again",
    )
