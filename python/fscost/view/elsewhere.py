"""Cells of guests that ran a second time, on another machine of a cluster."""

from collections.abc import Iterator
from typing import Any, TypeGuard

from fscost.results import CellRecord, RunResults
from fscost.view.grid import plain
from fscost.view.units import human_bytes

FACT = "second_run"
WRITTEN = "device_write_bytes"


def conditions(results: RunResults) -> list[str]:
    """Return how many cells were equal on two machines."""
    found = [fact for _, fact in _facts(results) if fact.get("differ") == []]
    if not found:
        return []
    cells = "1 cell" if len(found) == 1 else f"{len(found)} cells"
    return [f"{cells} ran a second time, on another machine, and wrote the same bytes."]


def cautions(results: RunResults) -> list[str]:
    """Return cautions about cells that differed between machines."""
    return [plain(line) for line in _cautions(results)]


def said(cell: CellRecord) -> str:
    """Return the outcome of a cell's second run in a sentence."""
    fact = cell.facts[FACT]
    name = f"{cell.profile}, repetition {cell.repetition}:"
    if failed := fact.get("failed"):
        return f"{name} a second run on {fact.get('machine')} failed: {failed}"
    if fact.get("differ") == []:
        return f"{name} a second run on {fact.get('machine')} wrote the same bytes"
    return f"{name} a second run on {fact.get('machine')} differs in {_difference(fact)}"


def _cautions(results: RunResults) -> Iterator[str]:
    for cell, fact in _facts(results):
        if fact.get("differ") != []:
            yield (
                f"{said(cell)}. This file system may write other bytes each time; if it repeats on"
                " one machine, do not compare cells of these machines."
            )


def _difference(fact: dict[str, Any]) -> str:
    """Describe the difference in bytes, or else the first one. A manifest is untrusted and may
    contain anything."""
    differ = fact.get("differ")
    known = [each for each in differ if isinstance(each, dict)] if isinstance(differ, list) else []
    known.sort(key=lambda each: each.get("metric") != WRITTEN)
    for each in known:
        first, second = each.get("first"), each.get("second")
        what = f"{each.get('metric')} of {each.get('phase')}"
        if each.get("metric") == WRITTEN and _is_size(first) and _is_size(second):
            return f"{what}: {human_bytes(second)} instead of {human_bytes(first)}"
        return f"{what}: {second} instead of {first}"
    return "its counters"


def _is_size(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and 0 <= value < 1 << 63


def _facts(results: RunResults) -> Iterator[tuple[CellRecord, dict[str, Any]]]:
    for cell in results.manifest.done:
        fact = cell.facts.get(FACT)
        if isinstance(fact, dict):
            yield cell, fact
