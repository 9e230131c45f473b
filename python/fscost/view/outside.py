"""Disturbance by other programs: calls of sync(2), which writes back every file system of the
machine, so also that of a cell in the native lab."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fscost.results import CellRecord, RunResults
from fscost.view.grid import plain

FACT = "outside_sync_calls"


@dataclass(frozen=True)
class _Calls:
    """Calls during a cell. `kept`: during the attempt whose results were kept, None if they could
    not be counted. `dropped`: during each earlier attempt."""

    kept: int | None
    dropped: tuple[int, ...] = ()


def cautions(results: RunResults) -> list[str]:
    """Return cautions about cells that other programs disturbed."""
    return [plain(line) for line in _cautions(results)]


def qualified(headline: str, results: RunResults) -> str:
    """Return the headline, qualified if most cells of a profile were disturbed."""
    disturbed = [
        name
        for name, (touched, done) in _by_profile(results).items()
        if headline and 2 * touched > done
    ]
    if not disturbed:
        return headline
    names = plain(_listed(disturbed))
    return f"{headline} Uncertain: other programs called sync during most cells of {names}."


def _cautions(results: RunResults) -> Iterator[str]:
    found = [_calls(cell) for cell in results.manifest.done]
    if any(each.kept is None for each in found):
        yield (
            "Calls of sync by other programs could not be counted here (output.log says why). Each"
            " would write back the file systems of all cells that run at the time."
        )
    touched = [each.kept for each in found if each.kept]
    if touched:
        of_profiles = ", ".join(
            f"{name} {of} of {done}" for name, (of, done) in _by_profile(results).items() if of
        )
        yield (
            f"Other programs called sync {_times(sum(touched))} during {len(touched)} of"
            f" {len(found)} cell{'s' * (len(found) > 1)} ({of_profiles}). sync writes back every"
            " file system of this machine, so these cells include writes that the workload alone does not cause. Stop"
            " these programs, or use `--lab vm`: a virtual machine is not affected."
        )
    dropped = [number for each in found for number in each.dropped]
    if dropped:
        many = len(dropped) > 1
        yield (
            f"{len(dropped)} {'attempts were' if many else 'attempt was'} dropped and repeated,"
            f" because other programs called sync {_times(sum(dropped))} during"
            f" {'them' if many else 'it'}."
        )


def _by_profile(results: RunResults) -> dict[str, tuple[int, int]]:
    """Number of disturbed cells and of all cells, by profile."""
    found: dict[str, tuple[int, int]] = {}
    for cell in results.manifest.done:
        touched, done = found.get(cell.profile, (0, 0))
        found[cell.profile] = (touched + bool(_calls(cell).kept), done + 1)
    return {name: found[name] for name in results.manifest.profile_names if name in found}


def _calls(cell: CellRecord) -> _Calls:
    """Read the fact of a cell. A manifest is untrusted and may contain anything."""
    match cell.facts.get(FACT):
        case {"kept": None}:
            return _Calls(None)
        case Mapping() as fact:
            kept, dropped = fact.get("kept"), fact.get("dropped")
            numbers = dropped if isinstance(dropped, list) else []
            return _Calls(
                kept if isinstance(kept, int) else 0,
                tuple(each for each in numbers if isinstance(each, int)),
            )
    return _Calls(0)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
