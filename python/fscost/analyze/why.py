"""The largest reasons of what was written, each with the option that would help."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fscost.analyze.commits import Why
from fscost.analyze.explain import Explanation
from fscost.analyze.findings import counted, share, size
from fscost.analyze.groups import rows
from fscost.analyze.journal import BTRFS, EXT, Journal, Journals

WORTH_SAYING = 0.05
"""Of all bytes written."""
_MOST_REASONS = 3
_KEYS = ("structure", "cause", "atime_alone", "copy")
_FAST_COMMIT = "journal_fast_commit"
_LAZY_INIT = "mkfs.ext4 -E lazy_itable_init=0,lazy_journal_init=0"


@dataclass(frozen=True)
class Reason:
    """One reason in words, and the option that would help; `remedy` is empty where no option
    does."""

    write_bytes: int
    words: str
    remedy: str = ""

    def json(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        return asdict(self)


def why(explanation: Explanation) -> list[Reason]:
    """The largest first; nothing below `WORTH_SAYING`."""
    journals = Journals(explanation)
    explanation.prepare([_KEYS], journals)
    sums = rows(explanation.sums(*_KEYS))
    total = sum(length for *_, length in sums)
    if not total:
        return []
    journal = journals.result()
    found = [
        *_of_sums(sums, total),
        *([] if journal is None else _of_journal(journal, sums, total)),
    ]
    worth = [reason for reason in found if reason.write_bytes >= WORTH_SAYING * total]
    return sorted(worth, key=lambda reason: -reason.write_bytes)[:_MOST_REASONS]


def _of_sums(sums: list[tuple[Any, ...]], total: int) -> Iterator[Reason]:
    atime = sum(length for _, _, is_alone, _, length in sums if is_alone)
    yield Reason(atime, f"{share(atime, total)} of its bytes are access times", "-o noatime")
    copies = sum(length for *_, copy, length in sums if copy)
    yield Reason(
        copies,
        f"{share(copies, total)} of its bytes are second copies (DUP) of metadata and its log",
        "mkfs.btrfs -m single",
    )
    late = sum(length for _, cause, _, _, length in sums if cause == "lazy_init")
    yield Reason(
        late, f"{share(late, total)} of its bytes are zeroes that mkfs left for later", _LAZY_INIT
    )


def _of_journal(journal: Journal, sums: list[tuple[Any, ...]], total: int) -> Iterator[Reason]:
    if journal.family == BTRFS:
        if journal.log_syncs:
            each = size(journal.log_sync_bytes / journal.log_syncs)
            part = f"{share(journal.log_sync_bytes, total)} of its bytes"
            syncs = counted(journal.log_syncs, "fsync")
            yield Reason(
                journal.log_sync_bytes,
                f"{syncs} wrote {each} of log tree and superblock each: {part}",
            )
        return
    if not journal.count:
        return
    forced = journal.reasons.count(Why.FORCED)
    is_forced = forced > journal.count / 2
    fast_bytes = sum(length for name, *_, length in sums if name == _FAST_COMMIT)
    what = "commit" if journal.family == EXT else "checkpoint"
    each = size((journal.bytes - fast_bytes) / journal.count)
    commits = f"{counted(journal.count, what)} of {each}{' each' * (journal.count > 1)}"
    fast = f"{size(fast_bytes)} of fast commits, " if fast_bytes else ""
    is_fast_alone = fast_bytes > journal.bytes / 2
    asked = " forced by fsync" if is_forced and not is_fast_alone else ""
    again = (
        f", {share(journal.again, journal.copies)} of it in an earlier {what} as well"
        if journal.again and journal.copies and not is_fast_alone
        else ""
    )
    remedy = _journal_remedy(journal, is_forced=is_forced) if journal.family == EXT else ""
    words = (
        f"{share(journal.bytes, total)} of its bytes are the journal: {fast}{commits}{asked}{again}"
    )
    yield Reason(journal.bytes, words, "" if fast_bytes else remedy)


def _journal_remedy(journal: Journal, *, is_forced: bool) -> str:
    """Of ext4: fewer blocks for each fsync, or fewer commits by the timer."""
    if is_forced:
        return "-O fast_commit"
    return "-o commit=60" if journal.reasons.count(Why.TIMER) > journal.count / 2 else ""
