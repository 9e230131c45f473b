"""Caution that a run is too short for what it compares: only the sync after it wrote anything."""

from collections.abc import Mapping, Sequence
from typing import Any

from fscost.results import TOTAL, RunResults
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.summary import Ranking
from fscost.view.units import human_seconds

_SETTLED = "settle_write_bytes"
_COMMAND = "command_s"
_MOSTLY = 0.9
_EXT = ("ext2", "ext3", "ext4")
_EXT_S, _OTHER_S = 5.0, 30.0
"""Interval of commits of ext's journal (`JBD2_DEFAULT_MAX_COMMIT_AGE`), and of btrfs
(`BTRFS_DEFAULT_COMMIT_INTERVAL`), xfs (`xfs_syncd_centisecs`) and writeback
(`dirty_expire_centisecs`)."""

Profile = Mapping[str, Any]


def too_short(results: RunResults, rows: Sequence[Row], found: Ranking) -> list[str]:
    """Return the caution, if the profiles differ in what timers decide and no timer can have run
    out before a command of the user's ended. Built-in workloads are made to be short, and say what
    they measure. The manifest is untrusted."""
    if results.manifest.request.get("workload"):
        return []
    profiles = {str(each.get("name")): each for each in results.manifest.profiles}
    named = [profiles[name] for name in found.profiles if name in profiles]
    if found.metric != WRITTEN or len({_timed(each) for each in named}) < 2:
        return []
    totals = {(row.profile, row.metric): row.median for row in rows if row.phase == TOTAL}
    shares, longest = [], 0.0
    for each in named:
        name = str(each.get("name"))
        written, settled, command_s = (
            totals.get((name, metric)) for metric in (WRITTEN, _SETTLED, _COMMAND)
        )
        if not written or settled is None or command_s is None:
            return []
        if settled < _MOSTLY * written or command_s >= interval_s(each):
            return []
        shares.append(settled / written)
        longest = max(longest, command_s)
    share = f"{100 * min(shares):.0f} %"
    share = "all" if share == "100 %" else f"at least {share}"
    return [
        (
            f"The command ended after {human_seconds(longest)}, before any timer (ext: 5 s,"
            f" others: 30 s): {share} of the bytes are those of the sync and"
            " the unmount after it. A longer workload shows what the timers write."
        )
    ]


def interval_s(profile: Profile) -> float:
    """Return the time after which a profile's kernel writes by itself."""
    for option in reversed(_options(profile)):
        if option.startswith("commit=") and option[len("commit=") :].isdigit():
            return float(option[len("commit=") :]) or _EXT_S
    has_journal = profile.get("type") in _EXT and not _is_without_journal(profile)
    return _EXT_S if has_journal else _OTHER_S


def _timed(profile: Profile) -> tuple[object, ...]:
    """Return what the timers of a profile depend on. `commit=` alone has a sentence of its own."""
    return profile.get("type"), "lazytime" in _options(profile), _is_without_journal(profile)


def _is_without_journal(profile: Profile) -> bool:
    words = profile.get("mkfs_flags")
    spelled = " ".join(map(str, words)) if isinstance(words, list) else str(words or "")
    return profile.get("type") == "ext2" or "^has_journal" in spelled


def _options(profile: Profile) -> list[str]:
    return str(profile.get("mount_options", "")).split(",")
