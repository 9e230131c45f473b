"""Largest reasons for the bytes written, each with the option that would reduce them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fscost.analyze.commits import Why
from fscost.analyze.explain import Explanation
from fscost.analyze.findings import counted, share, size
from fscost.analyze.groups import rows
from fscost.analyze.journal import BTRFS, EXT, Journal, Journals

WORTH_SAYING = 0.05
"""Minimum share of all bytes written at which a reason is reported."""
_MOST_REASONS = 3
_KEYS = ("structure", "cause", "atime_alone", "copy")
_FAST_COMMIT = "journal_fast_commit"
_COPIES = ("journal_copy", "log")
_OF_GROWTH = {"allocation", "size_or_extents"}
_ZEROS = "a program that writes over zeros, for which fdatasync commits nothing"
"""Where a program writes over blocks that it wrote before, only times change. fdatasync does not
wait for these (`ext4_fsync_journal` in fs/ext4/fsync.c, `xfs_fsync_seq` in fs/xfs/xfs_file.c)."""
_LOG_UNIT = "mkfs.xfs -l su=4096"
_ROUNDED_BYTES = 8192
"""The smallest log stripe unit is a block, and a checkpoint has one record or a few: more padding
is that of a larger unit."""
_MOVES = {
    "relocation": "of its bytes were moved by the file system itself (a balance or a cleaner)",
    "defragmentation": "of its bytes were file data that was moved to have fewer extents",
}
_LAZY_INIT = "mkfs.ext4 -E lazy_itable_init=0,lazy_journal_init=0, or mount -o noinit_itable"


@dataclass(frozen=True)
class Reason:
    """One reason in words, and the option that would help; `remedy` is empty if no option does."""

    write_bytes: int
    words: str
    remedy: str = ""

    def json(self) -> dict[str, Any]:
        """Convert to the form kept in a manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Reasons:
    """The reasons, the largest first, without those below `WORTH_SAYING`. `commits`: number of
    commits of the journal by cause (`commits.Why`); None if there is no journal."""

    reasons: list[Reason]
    commits: dict[str, int] | None = None


def why(explanation: Explanation) -> Reasons:
    """Return the reasons for the bytes written."""
    journals = Journals(explanation)
    explanation.prepare([_KEYS], journals)
    sums = rows(explanation.sums(*_KEYS))
    total = sum(length for *_, length in sums)
    if not total:
        return Reasons([])
    journal = journals.result()
    found = [
        *_of_sums(explanation, sums, total),
        *([] if journal is None else _of_journal(journal, sums, total)),
    ]
    worth = [reason for reason in found if reason.write_bytes >= WORTH_SAYING * total]
    largest = sorted(worth, key=lambda reason: -reason.write_bytes)[:_MOST_REASONS]
    return Reasons(largest, None if journal is None else _commits(journal))


def _commits(journal: Journal) -> dict[str, int]:
    if untold := journal.reasons.count(Why.UNTOLD):
        return {Why.UNTOLD.value: untold}
    return {
        why.value: journal.reasons.count(why)
        for why in (Why.FORCED, Why.TIMER, Why.SETTLE, Why.OTHER)
    }


def _of_sums(explanation: Explanation, sums: list[tuple[Any, ...]], total: int) -> Iterator[Reason]:
    atime = sum(length for _, _, is_alone, _, length in sums if is_alone)
    yield Reason(
        atime, f"access-time updates caused {share(atime, total)} of its bytes", "-o noatime"
    )
    yield _of_copies(explanation, sums, total)
    for cause, words in _MOVES.items():
        moved = sum(length for _, each, _, _, length in sums if each == cause)
        yield Reason(moved, f"{share(moved, total)} {words}")
    late = sum(length for _, cause, _, _, length in sums if cause == "lazy_init")
    yield Reason(
        late,
        f"{share(late, total)} of its bytes are zeros that mkfs left to the kernel",
        _LAZY_INIT,
    )


def _of_copies(explanation: Explanation, sums: list[tuple[Any, ...]], total: int) -> Reason:
    copies: Counter[str] = Counter()
    for structure, *_, copy, length in sums:
        copies[structure] += length * (copy > 0)
    # btrfs writes these whatever the profiles of its chunks.
    del copies["superblock_backup"]
    part = f"{share(copies.total(), total)} of its bytes are"
    # On several disks they are RAID copies, which protect against the failure of a disk.
    is_on_one_disk = list(explanation.families.values()).count(BTRFS) == 1
    if is_on_one_disk and not copies["file_data"]:
        words = f"{part} second copies of metadata and log trees (DUP)"
        return Reason(copies.total(), words, "mkfs.btrfs -m single")
    return Reason(copies.total(), f"{part} second and further copies of the same content")


def _of_journal(journal: Journal, sums: list[tuple[Any, ...]], total: int) -> Iterator[Reason]:
    if journal.family == BTRFS:
        if journal.log_syncs:
            each = size(journal.log_sync_bytes / journal.log_syncs)
            part = f"{share(journal.log_sync_bytes, total)} of its bytes"
            syncs = counted(journal.log_syncs, "fsync")
            yield Reason(
                journal.log_sync_bytes,
                f"{syncs} wrote {each} of log trees and superblocks each: {part}",
            )
        return
    if not journal.count:
        return
    forced = journal.reasons.count(Why.FORCED)
    is_forced = forced > journal.count / 2
    fast_bytes = sum(length for name, *_, length in sums if name == _FAST_COMMIT)
    what, copied = ("commit", "blocks") if journal.family == EXT else ("checkpoint", "items")
    each = size((journal.bytes - fast_bytes) / journal.count)
    padding = sum(length for _, cause, *_, length in sums if cause == "padding")
    filled = f" ({share(padding, journal.bytes)} padding)" if padding else ""
    commits = f"{counted(journal.count, what)} of {each}{' each' * (journal.count > 1)}{filled}"
    fast = f"{size(fast_bytes)} of fast commits, " if fast_bytes else ""
    is_fast_alone = fast_bytes > journal.bytes / 2
    which = "all" if forced == journal.count else f"{forced:,} of them"
    asked = f", {which} forced by fsync" if is_forced and not is_fast_alone else ""
    again = (
        f"; {share(journal.again, journal.copies)} of the {copied} were also in an earlier {what}"
        if journal.again and journal.copies and not is_fast_alone
        else ""
    )
    remedies = [_journal_remedy(journal, is_forced=is_forced)] if journal.family == EXT else []
    remedies += [_LOG_UNIT] if padding > _ROUNDED_BYTES * journal.count else []
    remedies += [_ZEROS] if is_forced and _is_growth(sums) else []
    part = f"{share(journal.bytes, total)} of its bytes went to the journal"
    words = f"{part}: {fast}{commits}{asked}{again}"
    remedy = "" if fast_bytes else ", or ".join(filter(None, remedies))
    yield Reason(journal.bytes, words, remedy)


def _is_growth(sums: list[tuple[Any, ...]]) -> bool:
    """Return whether most of what the journal copied says that files have grown."""
    copied: Counter[bool] = Counter()
    for structure, cause, *_, length in sums:
        if structure in _COPIES and cause not in ("log", "padding"):
            copied[set(cause.split("+")) <= _OF_GROWTH] += length
    return copied[True] > copied[False]


def _journal_remedy(journal: Journal, *, is_forced: bool) -> str:
    """Return the remedy for ext4: fewer blocks per fsync, or fewer commits by the timer."""
    if is_forced:
        return "-O fast_commit"
    is_longer = journal.reasons.period_ns >= 60 * 10**9
    is_by_timer = journal.reasons.count(Why.TIMER) > journal.count / 2
    return "-o commit=60" if is_by_timer and not is_longer else ""
