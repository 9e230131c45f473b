"""Reasons for the differences between profiles, with options that would help, and cautions for the
reader."""

from collections.abc import Mapping, Sequence
from typing import Any

from fscost.results import TOTAL, RunResults, written
from fscost.stats import MINIMUM_SIZE, Row, Verdict
from fscost.view.breakdown import WRITTEN, difference, explained_totals
from fscost.view.grid import plain
from fscost.view.reported import unreported
from fscost.view.short import too_short
from fscost.view.summary import Ranking
from fscost.view.units import human_bytes
from fscost.view.work import AMPLIFICATION, unequal

_MOST_REASONS = 2
_FRESH_WORTH_SAYING = 0.01
_MOSTLY = 0.5
_NOISY_TIME = 0.05


def why(results: RunResults, rows: Sequence[Row], found: Ranking, *, is_wide: bool) -> list[str]:
    """Return the reasons of the profiles that wrote the least and the most and of the baseline; of
    all profiles if `is_wide`. A profile that wrote about as much as the baseline, for the same
    reasons, is left out."""
    reasons = _reasons(results)
    totals = explained_totals(rows, found.profiles)
    written_rows = [row for row in rows if row.phase == TOTAL and row.metric == WRITTEN]
    called = {
        row.profile
        for row in written_rows
        if row.verdict in (Verdict.LOWER, Verdict.HIGHER) and found.baseline in totals
    }
    alike = {
        row.profile
        for row in written_rows
        if row.profile != found.baseline
        and abs((row.ratio or 0) - 1) < MINIMUM_SIZE
        and reasons.get(row.profile) == reasons.get(found.baseline)
    }
    lines = []
    for profile in _chosen(found, is_wide=is_wide):
        if profile in called and profile in totals:
            lines.append(
                difference(profile, found.baseline, totals[profile], totals[found.baseline])
            )
        if profile in alike:
            continue
        lines += [f"{profile}: {words}" for words in reasons.get(profile, [])[:_MOST_REASONS]]
    return [plain(line) for line in lines]


def why_title(results: RunResults, found: Ranking, *, is_wide: bool) -> str:
    """Return the heading of the reasons. The same bytes can have a cause and a location, so that
    several shares of a profile may add up to more than 100 %."""
    reasons = _reasons(results)
    chosen = _chosen(found, is_wide=is_wide)
    overlap = any(len(reasons.get(profile, [])) > 1 for profile in chosen)
    return f"Why{' (shares overlap)' if overlap else ''}"


def _chosen(found: Ranking, *, is_wide: bool) -> Sequence[str]:
    return found.profiles if is_wide else _ends(found)


def _ends(found: Ranking) -> list[str]:
    names = found.profiles
    if not names:
        return []
    ends = dict.fromkeys([names[0], found.baseline, names[-1]])
    # Other profiles that tie with the first have the same reasons.
    return [name for name in names if name in ends]


def _reasons(results: RunResults) -> dict[str, list[str]]:
    """Return the reasons from the first explained cell of each profile. The manifest is
    untrusted."""
    found: dict[str, list[str]] = {}
    for cell in results.manifest.done:
        listed = cell.facts.get("why")
        if isinstance(listed, list) and cell.profile not in found:
            found[cell.profile] = [_sentence(each) for each in listed if isinstance(each, dict)]
    return found


def _sentence(reason: Mapping[str, Any]) -> str:
    remedy = reason.get("remedy")
    return f"{reason.get('words', '')}{f' → {remedy}' if remedy else ''}"


def cautions(results: RunResults, rows: Sequence[Row], found: Ranking) -> list[str]:
    """Return cautions against misreading, only those that apply."""
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    work = unequal(rows)
    is_per_byte = found.metric == AMPLIFICATION
    lines = [
        *([] if work is None else [work.caution(is_per_byte=is_per_byte)]),
        *_unreported(results, found),
        *_times(found, totals),
        *_commits(results, found, totals),
        *_inline(results, found, totals),
        *_deferred(results, found, totals),
        *too_short(results, rows, found),
    ]
    return [plain(line) for line in [*lines, *_fresh(results, found, totals)]]


Totals = Mapping[tuple[str, str], Row]


def _unreported(results: RunResults, found: Ranking) -> list[str]:
    """Caution that an option may have had no effect, because the kernel accepted it but does not
    report it. The manifest is untrusted."""
    profiles = {str(profile.get("name")): profile for profile in results.manifest.profiles}
    words: dict[str, list[str]] = {}
    for cell in results.manifest.done:
        mount = cell.facts.get("mount")
        if cell.profile in found.profiles and isinstance(mount, dict):
            listed = f"{mount.get('options')},{mount.get('super_options')}"
            given = str(profiles[cell.profile].get("mount_options", ""))
            words[cell.profile] = unreported(str(mount.get("type")), given, listed)
    return [
        f"{name}: the kernel accepted {', '.join(silent)}, but does not report"
        f" {'it' if len(silent) == 1 else 'them'} for this mount, so probably"
        f" {'it has' if len(silent) == 1 else 'they have'} no effect."
        for name, silent in words.items()
        if silent
    ]


def _times(found: Ranking, totals: Totals) -> list[str]:
    """Caution that no time differs from the baseline's, if repetitions of a profile lie
    `_NOISY_TIME` or more apart."""
    times = [row for name in found.profiles if (row := totals.get((name, "wall_s"))) is not None]
    against = [row for row in times if row.profile != found.baseline]
    if (
        not against
        or min(row.n for row in times) < 2
        or any(row.verdict is not Verdict.NOT_SHOWN for row in against)
    ):
        return []
    widest = max(row.spread or 0.0 for row in times)
    if widest < _NOISY_TIME:
        return []
    return [
        (
            f"The times of one profile differ by up to {100 * widest:.0f} %, so no time difference "
            "between profiles is reported."
        )
    ]


def _commits(results: RunResults, found: Ranking, totals: Totals) -> list[str]:
    """Caution that the journal causes most of the spread: one commit more or less."""
    if found.metric != WRITTEN:
        return []
    names = []
    for profile in found.profiles:
        row, journal = totals.get((profile, WRITTEN)), totals.get((profile, written.JOURNAL))
        if row is None or journal is None or row.n < 2 or (row.spread or 0.0) < MINIMUM_SIZE:
            continue
        apart = (row.spread or 0.0) * row.median
        if (journal.spread or 0.0) * journal.median >= _MOSTLY * apart:
            names.append(f"{profile} by {human_bytes(apart)}")
    if not names:
        return []
    return [
        (
            f"Repetitions differ mostly in the journal ({', '.join(names)}): when commits happen "
            "depends on timing. A longer workload averages it out."
        )
    ]


def _inline(results: RunResults, found: Ranking, totals: Totals) -> list[str]:
    """Caution that small files of btrfs are stored in its trees, and count as metadata."""
    types = {str(profile.get("name")): profile.get("type") for profile in results.manifest.profiles}
    data = {
        name: row.median
        for name in found.profiles
        if (row := totals.get((name, written.FILE_DATA))) is not None
    }
    others = [value for name, value in data.items() if types.get(name) != "btrfs"]
    few = [
        name
        for name, value in data.items()
        if types.get(name) == "btrfs" and others and value < _MOSTLY * max(others)
    ]
    if not few:
        return []
    return [
        (
            f"{', '.join(few)}: files of up to 2 KiB are stored inside metadata "
            "(mount option max_inline), so their data counts as metadata."
        )
    ]


def _deferred(results: RunResults, found: Ranking, totals: Totals) -> list[str]:
    """Caution that syncs and the unmount write the time stamps that lazytime would defer on a file
    system that stays mounted."""
    options = {
        str(profile.get("name")): str(profile.get("mount_options", "")).split(",")
        for profile in results.manifest.profiles
    }
    lazy = [name for name in found.profiles if "lazytime" in options.get(name, [])]
    if not lazy:
        return []
    how = (
        "the unmount wrote"
        if results.manifest.options.get("settle") == "none"
        else "the syncs after each phase and the unmount wrote"
    )
    late = {
        name: row.median
        for name in lazy
        if (row := totals.get((name, "unmount_write_bytes"))) is not None and row.median
    }
    sizes = (
        f" ({', '.join(f'{human_bytes(size)} at unmount' for size in late.values())})"
        if late
        else ""
    )
    stamps = "the time stamps that lazytime puts off, and their bytes are counted"
    once = (
        "On a file system that stays mounted, lazytime writes them once a day; "
        "fscost always unmounts, so it cannot show that"
    )
    return [f"{', '.join(lazy)}: {how} {stamps}{sizes}. {once}."]


def _fresh(results: RunResults, found: Ranking, totals: Totals) -> list[str]:
    """Caution that relatime writes an access time for each new file, and then once a day, so that
    the age of the files matters."""
    options = {
        str(profile.get("name")): str(profile.get("mount_options", "")).split(",")
        for profile in results.manifest.profiles
    }
    names = []
    for name in found.profiles:
        row, whole = totals.get((name, written.ATIME)), totals.get((name, WRITTEN))
        is_strict = "strictatime" in options.get(name, [])
        if (
            row is not None
            and whole is not None
            and not is_strict
            and whole.median
            and row.median >= _FRESH_WORTH_SAYING * whole.median
        ):
            names.append(name)
    if not names:
        return []
    days = results.manifest.request.get("aged")
    which = ", ".join(names)
    if isinstance(days, (int, float)):
        rule = (
            "relatime writes the access time of such a file at its first read, at most once a day"
        )
        return [f"Access times ({which}): prepared files were {days:g} days old, and {rule}."]
    rule = (
        "relatime writes the access time of a new file at its first read, then at most once a day"
    )
    older = "--aged DAYS makes prepared files older"
    return [f"Access times ({which}): the files were new, and {rule} ({older})."]
