"""What second power cuts left, as a table."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost.crash.again import Again
from fscost.view.grid import NOTHING, Grid, plain

_LEGEND = (
    "recoveries: states whose mount and unmount were recorded, and cut again; broken: second states"
    " with a fault of a kind that their first state has not."
)


@dataclass(frozen=True)
class AgainView:
    """`rows` and `controls`: for `--json`. `next_state`: options that show the first broken second
    state, if there is one."""

    grid: Grid
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    controls: Sequence[Mapping[str, Any]]
    next_state: str | None


def again_view(seconds: Mapping[str, Again], controls: Mapping[str, Again]) -> AgainView:
    """Show second cuts, in the order of the profiles."""
    lines, rows, notes, next_state = [], [], [], None
    for profile, found in seconds.items():
        broken = found.broken
        count = f"{len(broken):,}" if broken else NOTHING
        lines.append([profile, f"{found.firsts:,}", f"{len(found.seconds):,}", count])
        example, number = _example(found)
        if broken:
            notes.append(f"{profile}: {example}.")
            which = f" --profile {shlex.quote(profile)}" if len(seconds) > 1 else ""
            next_state = next_state or f"--state {number}{which}"
        rows.append({"profile": profile, **_counts(found), "example": example})
    notes.append(_LEGEND)
    notes += [_control(profile, found) for profile, found in controls.items()]
    header = ["profile", "recoveries", "states", "broken"]
    title = "After a second power cut, during the recovery from the first"
    controlled = [{"profile": name, **_counts(found)} for name, found in controls.items()]
    grid = Grid(title, header, lines, left=(0,))
    return AgainView(grid, [plain(note) for note in notes], rows, controlled, next_state)


def _counts(found: Again) -> dict[str, int]:
    return {
        "recoveries": found.firsts,
        "states": len(found.seconds),
        "broken": len(found.broken),
    }


def _example(found: Again) -> tuple[str, str]:
    """Return the first broken second state in words, and its number."""
    for second in found.broken:
        numbers = second.numbers
        return f"state {numbers}, {numbers.words}: {second.faults[0]}", str(numbers)
    return "", ""


def _control(profile: str, found: Again) -> str:
    return (
        f"Control: if the recoveries of {profile} had sent no flush, {len(found.broken)} of"
        f" {len(found.seconds)} second states would be broken."
    )
