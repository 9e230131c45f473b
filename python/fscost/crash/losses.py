"""The loss of a disk in states of a recording, and each documented way back."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from fscost import capture
from fscost.crash import sizes
from fscost.crash.disks import Disk
from fscost.crash.explore import (
    SHARED,
    Limits,
    Source,
    State,
    about_of,
    broken,
    job_of,
    planned,
    reference,
    silent,
)
from fscost.crash.lost import ARRAY, WAYS, Lost, hows, summed
from fscost.crash.programs import Answered, Made, Say

_CUTS = 3
"""Instants at which disks are lost."""
_SPARE = "new+"
"""Begins the names of empty disks of a guest; no disk of a profile has such a name."""


def lost(
    found: Source,
    limits: Limits,
    answered: Answered,
    say: Say = silent,
) -> list[Lost]:
    """Lose each disk beside the main one (of btrfs and md, each disk) at several instants, in each
    way in which it can be lost, and try each documented way back."""
    sizes.check(found.recording, limits.device)
    ways = WAYS[found.family]
    losses = list(itertools.product(_losable(found), hows(found.family), range(len(ways))))
    states = {how: _losing(found, limits, how) for how in hows(found.family)}
    pending = capture.crash(found.recording).pending(found.begin_ns, limits.device)
    begun = {"begin_ns": found.begin_ns, "all_kept": list(range(len(pending)))}
    losing = [(loss, state) for loss in losses for state in states[loss[1]]]

    def job(of: tuple[tuple[int, str, int], State]) -> dict[str, Any]:
        (number, how, way), state = of
        lost = {"number": number, "how": how, "way": way, **begun}
        return {**job_of(found, state), "lost": lost}

    jobs = Made(job, losing)
    known, _ = reference(found, {state.at_ns for _, state in losing}, limits, answered)

    def judged(place: int, told: Mapping[str, Any]) -> dict[str, Any]:
        by_ns = losing[place][1].at_ns - found.margin_ns
        return {**told, "files": None, "broken": broken(known, by_ns, told)}

    answers = answered(with_spares(found, about_of(found, limits)), jobs, say, judged)
    left = iter(answers)
    return [
        summed(
            found.disks[number].name,
            how,
            ways[way],
            list(itertools.islice(left, len(states[how]))),
        )
        for number, how, way in losses
    ]


def with_spares(found: Source, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all states share, with empty disks that take the place of lost ones."""
    spares = [
        asdict(replace(disk, name=f"{_SPARE}{number}"))
        for number, disk in enumerate(_different(found.disks))
    ]
    return {**about, "spares": spares}


def _losable(found: Source) -> list[int]:
    """Return the numbers of the disks that are lost."""
    if found.family == ARRAY:
        return [number for number, disk in enumerate(found.disks) if disk.is_member]
    return [number for number in range(len(found.disks)) if number or found.family in SHARED]


def _different(disks: Sequence[Disk]) -> list[Disk]:
    """Return one disk of each size and sector size."""
    return list({(disk.size_bytes, disk.sector_bytes): disk for disk in disks}.values())


def _losing(found: Source, limits: Limits, how: str) -> list[State]:
    """Return the states that lose a disk. Whether parity replaces a member depends on which writes
    the others have kept, so that an array needs many."""
    if (found.family, how) != (ARRAY, "gone"):
        return _few(found, limits)
    crash = capture.crash(found.recording)
    cuts = crash.cuts(found.begin_ns, found.end_ns, limits.cuts)
    return planned(crash, cuts, limits).states


def _few(found: Source, limits: Limits) -> list[State]:
    """Return few states: at each instant, nothing and everything that was pending survived."""
    crash = capture.crash(found.recording)
    states = []
    for at_ns in crash.cuts(found.begin_ns, found.end_ns, _CUTS):
        pending = len(crash.pending(at_ns, limits.device))
        states.append(State(at_ns, "none", (), pending))
        if pending:
            states.append(State(at_ns, "all", range(pending), pending))
    return states
