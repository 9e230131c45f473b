"""A second power cut, while a state recovers from the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fscost.crash.explore import (
    Limits,
    Outcome,
    Source,
    State,
    about_of,
    job_of,
    outcome_of,
    reference,
    silent,
)
from fscost.crash.fsynced import Reference
from fscost.crash.programs import Answered, Say
from fscost.crash.verdict import named, worse
from fscost.errors import HostError

_MOST_STATES = 32
"""States of a profile whose recovery is cut."""
_CONTROLLED, _CONTROL_STATES = 4, 8
"""States whose recovery is cut as if it had sent no flush, and second states of each."""


@dataclass(frozen=True)
class Numbers:
    """What rebuilds a second state. `number`: of the first state, `first`; `place`: among the
    second states of that one; `cut`: place of the second cut among the instants of the recovery;
    `traffic`: digest of the recovery's requests."""

    number: int
    place: int
    first: State
    cut: int
    how: str
    kept: Sequence[int]
    pending: int
    traffic: str

    def __str__(self) -> str:
        return f"{self.number}.{self.place}"

    @property
    def words(self) -> str:
        """The state in words."""
        return (
            f"{named(self.first)}; then its recovery was cut, {len(self.kept)} of {self.pending}"
            f" pending blocks kept ({self.how})"
        )


@dataclass(frozen=True)
class Second:
    """What a second cut left. `faults`: in words, of kinds that the first state has not. The
    outcome's state is one of the recording of the recovery."""

    numbers: Numbers
    outcome: Outcome
    faults: Sequence[str]


@dataclass(frozen=True)
class Again:
    """The second states of a profile. `firsts`: how many recoveries were cut."""

    seconds: Sequence[Second]
    firsts: int

    @property
    def broken(self) -> list[Second]:
        """Those with faults that their first states have not."""
        return [each for each in self.seconds if each.faults]


def again(
    found: Source,
    limits: Limits,
    outcomes: Sequence[Outcome],
    answered: Answered,
    say: Say = silent,
) -> Again:
    """Cut the recovery of some states, evenly spread, and examine what each second cut left."""
    return _cut(found, limits, _spread(outcomes, _MOST_STATES), answered, say)


def control(
    found: Source, limits: Limits, outcomes: Sequence[Outcome], answered: Answered
) -> Again:
    """Do the same with few states, as if their recoveries had sent no flush."""
    firsts = _spread(outcomes, _CONTROLLED)
    limits = replace(limits, again=_CONTROL_STATES)
    return _cut(found, limits, firsts, answered, silent, is_unflushed=True)


def _cut(
    found: Source,
    limits: Limits,
    firsts: Sequence[tuple[int, Outcome]],
    answered: Answered,
    say: Say,
    *,
    is_unflushed: bool = False,
) -> Again:
    asked = {"most": limits.again, "is_unflushed": is_unflushed}
    jobs = [
        # Each recovery is cut at other places.
        {**job_of(found, first.state), "again": {**asked, "seed": limits.seed + number}}
        for number, first in firsts
    ]
    known, _ = reference(found, {first.state.at_ns for _, first in firsts}, limits, answered)

    def seconds(place: int, answer: Mapping[str, Any]) -> list[Second]:
        number, first = firsts[place]
        return [
            _second(found, known, (number, its), first, told)
            for its, told in enumerate(answer["again"], start=1)
        ]

    answers = answered(about_of(found, limits), jobs, say, seconds)
    return Again([each for some in answers for each in some], len(firsts))


def _second(
    found: Source,
    known: Reference | None,
    places: tuple[int, int],
    first: Outcome,
    told: Mapping[str, Any],
) -> Second:
    how, kept, pending = told["how"], told["kept"], told["pending"]
    numbers = Numbers(*places, first.state, told["cut"], how, kept, pending, told["traffic"])
    state = State(told["at_ns"], how, kept, pending, told["without"])
    # The recovery promises nothing: what was promised before the first cut must be there.
    outcome = outcome_of(known, state, first.state.at_ns - found.margin_ns, told["found"])
    return Second(numbers, outcome, worse(first, outcome))


def rebuilt(
    found: Source, device: str, numbers: Numbers, answered: Answered, recording: Path
) -> Outcome:
    """Examine a second state again. The recording of the recovery goes to a new file."""
    limits, first = Limits(device=device), numbers.first
    asked = {
        "cut": numbers.cut,
        "how": numbers.how,
        "kept": list(numbers.kept),
        "traffic": numbers.traffic,
        "recording": str(recording),
    }
    jobs = [{**job_of(found, first), "again": asked}]
    [answer] = answered(about_of(found, limits), jobs, silent)
    if not answer["again"]:
        raise HostError(
            "the recovery wrote other requests than in the examination",
            "try again, on the kernel of the examination",
        )
    [told] = answer["again"]
    known, _ = reference(found, {first.at_ns}, limits, answered)
    state = State(told["at_ns"], numbers.how, numbers.kept, told["pending"])
    return outcome_of(known, state, first.at_ns - found.margin_ns, told["found"])


def _spread(outcomes: Sequence[Outcome], most: int) -> list[tuple[int, Outcome]]:
    """Return at most `most` of the states that mount, evenly spread, with their numbers."""
    mounted = [each for each in enumerate(outcomes, start=1) if each[1].mounts]
    count = min(len(mounted), most)
    return [mounted[place * len(mounted) // count] for place in range(count)]
