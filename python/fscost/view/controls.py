"""The controls of power cuts: what must be found, and what was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost.crash.controls import Known
from fscost.view.grid import NOTHING, Grid

_NOTE = "must have: some of its states; must not have: none of them."


@dataclass(frozen=True)
class ControlsView:
    """`rows`: one for each control, for `--json`."""

    title: str
    grid: Grid
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


def controls_view(found: Sequence[tuple[Known, int, Mapping[str, int]]]) -> ControlsView:
    """Show each control, the number of its states, and how many of them have each fault."""
    rows = [
        {
            "profile": known.profile,
            "device": known.device,
            "some": list(known.some),
            "none": list(known.none),
            "states": states,
            **counts,
            "is_right": known.is_right(counts),
        }
        for known, states, counts in found
    ]
    lines = [_line(known, row) for (known, _, _), row in zip(found, rows, strict=True)]
    right = sum(1 for row in rows if row["is_right"])
    header = ["profile", "device", "must have", "must not have", "states", "found", "right"]
    grid = Grid("", header, lines, left=(0, 1, 2, 3, 5, 6))
    return ControlsView(f"Controls: {right} of {len(rows)} are right", grid, [_NOTE], rows)


def _line(known: Known, row: Mapping[str, Any]) -> list[str]:
    asked = [*known.some, *known.none]
    found = [f"{row[word]:,} {word}" for word in asked if row[word]]
    return [
        known.profile,
        known.device,
        ", ".join(known.some) or NOTHING,
        "any fault" if known.is_safe else ", ".join(known.none) or NOTHING,
        f"{row['states']:,}",
        ", ".join(found) or NOTHING,
        "yes" if row["is_right"] else "NO",
    ]
