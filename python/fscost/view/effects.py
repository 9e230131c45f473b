"""Sentences about options that change nothing, and about fewer bytes that wear a device more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fscost import stats
from fscost.results import TOTAL, RunResults, written
from fscost.stats import Row, Verdict
from fscost.view.breakdown import WRITTEN
from fscost.view.summary import Ranking
from fscost.view.units import human_ratio

_ACCESS_TIMES = frozenset(("noatime", "nodiratime", "relatime", "strictatime", "diratime"))
_NAND = "nand_write_bytes"
_NEAR = 0.1
"""Part by which commits and calls of fsync may differ if calls force nearly all commits: mount,
sync and unmount commit too."""

Totals = Mapping[tuple[str, str], Row]


def effects(results: RunResults, rows: Sequence[Row], found: Ranking) -> list[str]:
    """Return the sentences that the samples support."""
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    return [*_without_effect(results, totals, found), *_wear(totals, found)]


def _without_effect(results: RunResults, totals: Totals, found: Ranking) -> Iterator[str]:
    """Say why a profile's options changed nothing, if it differs from the baseline only in them.
    The manifest is untrusted."""
    profiles = {str(profile.get("name")): profile for profile in results.manifest.profiles}
    commits = _commits(results)
    for name in found.profiles:
        row = totals.get((name, WRITTEN))
        if name == found.baseline or row is None or _has_changed(row):
            continue
        options = _options_apart(profiles.get(name, {}), profiles.get(found.baseline, {}))
        if not options:
            continue
        if all(option.startswith("commit=") for option in options):
            counts, its = commits.get(name), commits.get(found.baseline)
            if counts is None:
                yield from _as_many(results, totals, name, found.baseline)
            elif its is not None and not counts["timer"] and not its["timer"]:
                yield f"{name}: {_commits_in_words(counts)}, so commit= changes nothing."
        elif options <= _ACCESS_TIMES:
            atime = [totals.get((each, written.ATIME)) for each in (name, found.baseline)]
            if all(each is not None and not each.median for each in atime):
                yield (
                    f"{name}: neither it nor {found.baseline} wrote any access times, so"
                    f" {', '.join(sorted(options))} changes nothing here."
                )


def _has_changed(row: Row) -> bool:
    """Return whether the bytes written differ from the baseline's, shown or not: one repetition
    has no interval."""
    is_near = row.ratio is not None and abs(row.ratio - 1) < stats.MINIMUM_SIZE
    return row.verdict in (Verdict.LOWER, Verdict.HIGHER) or not is_near


def _options_apart(profile: Mapping[str, Any], baseline: Mapping[str, Any]) -> set[str]:
    """Return the mount options that one of two profiles has alone. Empty if they differ in anything
    else."""
    same = {"name", "spelling", "summary", "mount_options", "sweep", "levels"}
    mine, its = (
        {key: value for key, value in each.items() if key not in same}
        for each in (profile, baseline)
    )
    if mine != its:
        return set()
    options = [
        set(filter(None, str(each.get("mount_options", "")).split(",")))
        for each in (profile, baseline)
    ]
    return options[0] ^ options[1]


def _commits(results: RunResults) -> dict[str, dict[str, int]]:
    """Return the number of commits by cause, from the first explained cell of each profile."""
    found: dict[str, dict[str, int]] = {}
    for cell in results.manifest.done:
        counts = cell.facts.get("commits")
        if not isinstance(counts, dict) or cell.profile in found:
            continue
        values = {why: counts.get(why) for why in ("forced", "timer", "settle", "other")}
        known = {why: count for why, count in values.items() if isinstance(count, int)}
        if len(known) == len(values) and any(known.values()):
            found[cell.profile] = known
    return found


def _as_many(results: RunResults, totals: Totals, name: str, baseline: str) -> Iterator[str]:
    """Say that a profile made as many commits as the baseline, and about one for each fsync. Their
    causes are unknown in emulated guests, whose calls and writes have different clocks."""
    counts = _counted(results)
    commits, calls = counts.get(name), totals.get((name, "sync_calls"))
    if commits is None or commits != counts.get(baseline) or calls is None:
        return
    if abs(commits - calls.median) <= _NEAR * calls.median:
        yield (
            f"{name}: as many commits as {baseline}, {commits:,}, for {calls.median:,.0f} calls of"
            " fsync, so commit= changes nothing here."
        )


def _counted(results: RunResults) -> dict[str, int]:
    """Return the number of commits of unknown cause, from the first explained cell of each
    profile."""
    found: dict[str, int] = {}
    for cell in results.manifest.done:
        counts = cell.facts.get("commits")
        if isinstance(counts, dict) and isinstance(count := counts.get("untold"), int):
            found.setdefault(cell.profile, count)
    return found


def _commits_in_words(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    words = {
        "forced": "forced by fsync",
        "settle": "at the end of a phase",
        "other": "by a sync or for lack of space",
    }
    causes = [f"{counts[why]:,} {word}" for why, word in words.items() if counts[why]]
    if len(causes) == 1:
        every = "its only commit was" if total == 1 else f"all {total:,} commits were"
        return f"{every} {causes[0].partition(' ')[2]}"
    return f"the timer made none of its {total:,} commits ({', '.join(causes)})"


def _wear(totals: Totals, found: Ranking) -> Iterator[str]:
    """Say where fewer bytes from the host are more bytes for the flash memory."""
    for name in found.profiles:
        host, nand = totals.get((name, WRITTEN)), totals.get((name, _NAND))
        if host is None or nand is None or name == found.baseline:
            continue
        if (host.ratio or 1) < 1 < (nand.ratio or 1) and nand.verdict is not Verdict.NOT_SHOWN:
            yield (
                f"{name} writes {human_ratio(host.ratio or 1)} the bytes of {found.baseline}, but"
                f" they cost {human_ratio(nand.ratio or 1)} the NAND bytes: the device of --ssd"
                " copies more, so it wears out sooner."
            )
