"""Designs of a sweep: the combinations of levels that are measured."""

from collections.abc import Iterable, Sequence
from math import prod

from fscost.errors import InputError, did_you_mean
from fscost.profile.braces import MOST, Expansion, check, combination, expand, factors
from fscost.profile.model import Profile

FULL, SCREENING = "full", "screening"
_DESIGNS = (FULL, SCREENING)
_MOST_FACTORS = 20


def expand_all(spellings: Iterable[str], design: str = FULL) -> list[Expansion]:
    """Return the combinations of all spellings that `design` measures. InputError if there are too
    many in all."""
    if design not in _DESIGNS:
        remedy = did_you_mean(design, _DESIGNS) or " or ".join(_DESIGNS)
        raise InputError(f"--design {design!r} is unknown", remedy)
    found: list[Expansion] = []
    for spelling in spellings:
        found += expand(spelling) if design == FULL else _screened(spelling)
        if len(found) > MOST:
            raise InputError(
                f"the profiles expand to more than {MOST}", "write fewer choices in braces"
            )
    return found


def described(profiles: Sequence[Profile]) -> list[str]:
    """Name the profiles, those of a sweep together."""
    sweeps: dict[str, list[Profile]] = {}
    for profile in profiles:
        sweeps.setdefault(profile.sweep or profile.name, []).append(profile)
    return [_counted(name, found) if found[0].sweep else name for name, found in sweeps.items()]


def _counted(sweep: str, found: Sequence[Profile]) -> str:
    levels = [len(set(column)) for column in zip(*(each.levels for each in found), strict=True)]
    whole = prod(levels)
    count = f"{len(found)}" if len(found) == whole else f"{len(found)} of {whole}"
    return f"{count} combinations of {sweep} ({' × '.join(map(str, levels))})"


def _screened(spelling: str) -> list[Expansion]:
    """Return a two-level fractional factorial of resolution IV: a Hadamard matrix and its mirror
    image (a foldover). Main effects are clear of each other and of two-way interactions, which are
    confounded among themselves (Montgomery, *Design and Analysis of Experiments*, ch. 8)."""
    check(spelling)
    found = factors(spelling)
    for factor, levels in found.items():
        if levels != 2:
            raise InputError(
                f"--design screening: {factor} has {levels} levels",
                "give each factor two, or leave out --design",
            )
    if len(found) > _MOST_FACTORS:
        raise InputError(
            f"--design screening: {spelling} has {len(found)} factors",
            f"give at most {_MOST_FACTORS}",
        )
    if len(found) < 2:
        return expand(spelling)
    # Sylvester's Hadamard matrix: the sign of an entry is the parity of the bits in common.
    runs = range(1 << (len(found) - 1).bit_length())
    half = [[(run & column).bit_count() % 2 for column in range(len(found))] for run in runs]
    mirrored = [[1 - number for number in run] for run in half]
    return [combination(spelling, numbers) for numbers in (*half, *mirrored)]
