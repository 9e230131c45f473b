"""The fewest operations of a workload that still break a promise of the same kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from fscost.crash import sequences, workloads
from fscost.crash.case import path_of
from fscost.crash.explore import Exploration, Outcome, Source, kept_at
from fscost.crash.minimise import Lost, fewest_lost
from fscost.crash.promises import OPERATIONS, most_rounds
from fscost.crash.verdict import Verdict, kind_of, worst

_MOST_TRIALS = 40
"""More than six operations need."""
Fault = tuple[Verdict, str]
"""Verdict on a state, and the kind of promise that it breaks, if it is one."""


@dataclass(frozen=True)
class Work:
    """A part of a workload. `operations`: what it does, in words, in each round."""

    workload: str
    operations: Sequence[str]
    rounds: int = 1

    @property
    def count(self) -> int:
        """How many operations it has in all."""
        return self.rounds * len(self.operations)


Breaks = Callable[[Work], bool]
"""Runs a part of a workload on a disk of its own, and says whether that has the same fault."""


def fault(outcome: Outcome) -> Fault:
    """Return the fault that a part of the workload must have, too."""
    return worst(outcome)[0], kind_of(outcome)[0]


def found_in(explored: Exploration, wanted: Fault) -> int | None:
    """Return the number of the first state with a fault, if there is one."""
    numbered = enumerate(explored.outcomes, start=1)
    return next((number for number, outcome in numbered if fault(outcome) == wanted), None)


def whole(found: Source, outcome: Outcome) -> Work | None:
    """Return the work that a state's fault is about: one sequence, or the rounds that had begun.
    None for workloads whose operations are unknown."""
    if chosen := workloads.operations(found.workload):
        begun = most_rounds(kept_at(found.promises, outcome.state.at_ns, 0)) + 1
        all_ = most_rounds({kind: number for _, kind, number in found.promises})
        rounds = min(begun, max(1, all_))
        return Work(found.workload, chosen, rounds)
    if workloads.is_sequences(found.workload):
        return _of_sequence(_sequence(found, outcome))
    return None


def reduced(before: Work, outcome: Outcome, breaks: Breaks) -> Work | None:
    """Return the smallest part of the work that has the same fault, on a disk of its own; None if
    the whole work does not have it."""
    if workloads.operations(before.workload):
        return _reduced_files(before, outcome, breaks)
    parts = sequences.parsed(before.workload).parts
    return next((work for work in map(_of_sequence, parts) if breaks(work)), None)


def _sequence(found: Source, outcome: Outcome) -> sequences.Sequence:
    """Return the sequence whose file is broken, else the one during which the power was cut: each
    makes one promise, at its end."""
    folder = PurePosixPath(path_of(found, kind_of(outcome)[1]))
    if folder.parts and (words := folder.parts[0].partition(" ")[2]):
        return sequences.parsed(words)
    known = workloads.sequences_of(found.workload, len(found.promises))
    ended = sum(made_ns <= outcome.state.at_ns for made_ns, _, _ in found.promises)
    return known[min(ended, len(known) - 1)]


def _of_sequence(found: sequences.Sequence) -> Work:
    return Work(str(found), str(found).split(", "))


def _reduced_files(before: Work, outcome: Outcome, breaks: Breaks) -> Work | None:
    """Find fewer rounds, then fewer operations of each. What the broken file belongs to comes
    first."""
    names = tuple(before.operations)

    def work(chosen: Sequence[str], rounds: int) -> Work:
        return Work(workloads.some_files(chosen), chosen, rounds)

    def breaks_any(tried: Sequence[Lost]) -> list[bool]:
        """Say of the first part that breaks the promise that it does, and try no more."""
        answers = [False] * len(tried)
        for place, chosen in enumerate(tried):
            if chosen and breaks(work([names[each] for each in chosen], rounds)):
                answers[place] = True
                break
        return answers

    doubled = [1 << power for power in range(before.rounds.bit_length())]
    tried = dict.fromkeys([*(each for each in doubled if each < before.rounds), before.rounds])
    own = [each for each in OPERATIONS if kind_of(outcome)[1].startswith(each)]
    for rounds in tried:
        if own and own[0] in names and breaks(work(own[:1], rounds)):
            return work(own[:1], rounds)
        if not breaks(work(names, rounds)):
            continue
        places, _ = fewest_lost(tuple(range(len(names))), breaks_any, _MOST_TRIALS)
        return work([names[place] for place in places], rounds)
    return None
