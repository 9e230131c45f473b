"""One repetition as a result: emulated guests execute the same instructions in each."""

from collections.abc import Sequence
from dataclasses import replace

from fscost.results import TOTAL, RunResults
from fscost.stats import Row
from fscost.stats.ratio import verdict
from fscost.view.breakdown import WRITTEN

_KNOWN = {
    **dict.fromkeys(("ext2", "ext3", "ext4", "f2fs", "nilfs2", "jfs", "reiserfs"), 0.01),
    **dict.fromkeys(("ntfs3", "exfat", "vfat"), 0.01),
    "btrfs": 0.02,
    "xfs": 0.05,
}
"""How far the bytes written by two repetitions may lie apart, by file system. `tests/whole/
test_vm_repeats.py` checks these bounds, of this metric alone: requests, flushes and single causes
differ by more (by 4 % in docs/posts/runs/external-journal-6.12)."""


def judged(results: RunResults, rows: Sequence[Row], baseline: str) -> list[Row]:
    """Return the rows. Totals of bytes written that have one repetition in an emulated guest get an
    interval from the bounds of their file systems. The manifest is untrusted."""
    bounds = _bounds(results)
    if not bounds:
        return list(rows)
    own = bounds.get(baseline)
    return [_judged(row, bounds.get(row.profile), own) for row in rows]


def reason(results: RunResults, rows: Sequence[Row], baseline: str) -> str:
    """Return why one repetition is a result, in one sentence; empty if it is none."""
    bounds = _bounds(results)
    shown = {row.profile for row in rows if row.n == 1 and row.ratio_low is not None}
    if not shown:
        return ""
    widest = max(bounds.get(name, 0.0) for name in shown | {baseline})
    return (
        "One repetition is a result: an emulated guest executes the same instructions each time,"
        f" and the bytes written by repetitions were within {100 * widest:.0f} % of each other."
        " Other figures of one repetition show no difference."
    )


def _judged(row: Row, bound: float | None, own: float | None) -> Row:
    is_total = row.phase == TOTAL and row.metric == WRITTEN and row.n == 1
    if not is_total or row.ratio is None or bound is None or own is None:
        return row
    low, high = row.ratio * (1 - bound - own), row.ratio * (1 + bound + own)
    return replace(row, ratio_low=low, ratio_high=high, verdict=verdict(row.ratio, low, high))


def _bounds(results: RunResults) -> dict[str, float]:
    """Return the bound of each profile whose guests were emulated, and had their replies at the
    same instruction (`facts.guest.takes_turns`)."""
    if not results.is_emulated:
        return {}
    types = {str(each.get("name")): each.get("type") for each in results.manifest.profiles}
    found: dict[str, float] = {}
    for cell in results.manifest.done:
        guest = cell.facts.get("guest")
        if not isinstance(guest, dict) or guest.get("takes_turns") is not True:
            return {}
        if (bound := _KNOWN.get(str(types.get(cell.profile)))) is not None:
            found[cell.profile] = bound
    return found
