"""Findings in words: only conclusions that follow from the sums and are large enough to matter."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from fscost.analyze.commits import Why
from fscost.analyze.explain import Explanation
from fscost.analyze.groups import (
    DATA,
    JOURNAL,
    METADATA,
    NO_FILE,
    OF_DIRECTORIES,
    By,
    among,
    doubtful_bytes,
    keys,
    kinds,
    largest,
    rows,
    total_bytes,
    unknown_bytes,
)
from fscost.analyze.journal import BTRFS, EXT, Journal
from fscost.analyze.journal import journal as journal_of

WORTH_SAYING = 0.01
WORTH_NAMING = 0.1
"""Minimum share of all bytes at which a directory or file is named."""
UNKNOWN_ALLOWED = 0.001
DOUBTFUL_ALLOWED = 0.001
SMALL_FILE_BYTES = 64 << 10
MANY_FILES = 100
_COST = ("structure", "cause", "atime_alone", "copy")
_OF_CAUSE = {
    "unchanged": (
        "of the bytes were metadata rewritten with unchanged content, journal copies included"
    ),
    "relocation": "of the bytes were moved by the file system itself (a balance or a cleaner)",
    "defragmentation": "of the bytes were file data that was moved to have fewer extents",
    "padding": "of the bytes only filled records of the log up to its stripe unit or sector",
    "lazy_init": (
        "of the bytes were zeros that mkfs had left to the kernel (ext4: -E"
        " lazy_itable_init=0,lazy_journal_init=0 makes mkfs write them, and -o noinit_itable leaves"
        " the inode tables as they are)"
    ),
}
"""Findings about the bytes of a cause."""
_CODES = ("phase", "structure", "home_structure", "cause", "atime_alone", "copy", "doubtful")


def needs(explanation: Explanation) -> list[tuple[str, ...]]:
    """Return the sums from which all other required sums are computed, so that one pass is
    enough."""
    if explanation.native is None:
        return [_CODES, keys(By.DIRECTORY)]
    return [_CODES, keys(By.FILE), OF_DIRECTORIES]


def findings(explanation: Explanation) -> list[str]:
    """Return the findings, one sentence each."""
    return sentences(explanation, journal_of(explanation))


def sentences(explanation: Explanation, journal: Journal | None) -> list[str]:
    """Return the findings when the journal's activity is already known."""
    explanation.prepare(needs(explanation))
    total = total_bytes(explanation)
    return list(_findings(explanation, total, journal)) if total else []


def _findings(explanation: Explanation, total: int, journal: Journal | None) -> Iterator[str]:
    if (unknown := unknown_bytes(explanation)) > UNKNOWN_ALLOWED * total:
        yield (
            f"{share(unknown, total)} of the bytes are unidentified: all figures below may be off"
            " by that much"
        )
    if (doubtful := doubtful_bytes(explanation)) >= DOUBTFUL_ALLOWED * total:
        yield (
            f"{share(doubtful, total)} of the bytes are file data whose file is uncertain"
            " (doubtful)"
        )
    causes: Counter[str] = Counter()
    alone = further = 0
    for _, cause, is_alone, copy, length in rows(explanation.sums(*_COST)):
        causes[cause] += length
        alone += length * is_alone
        further += length * (copy > 0)
    if alone >= WORTH_SAYING * total:
        yield (
            f"{share(alone, total)} of the bytes were access times alone: noatime would have"
            " avoided them"
        )
    yield from _proportion(explanation)
    if journal is not None:
        yield from _journal(journal, total)
    for cause, words in _OF_CAUSE.items():
        if causes[cause] >= WORTH_SAYING * total:
            yield f"{share(causes[cause], total)} {words}"
    if further >= WORTH_SAYING * total:
        yield (
            f"{share(further, total)} of the bytes were second and further copies of the same"
            " content (DUP, RAID)"
        )
    yield from _directory(explanation, total)
    yield from _files(explanation, total, 0 if journal is None else journal.forced_bytes)


def _proportion(explanation: Explanation) -> Iterator[str]:
    found = kinds(explanation)
    if found[DATA]:
        metadata, journal = (_ratio(found[kind] / found[DATA]) for kind in (METADATA, JOURNAL))
        yield (
            f"for each byte of file data, {metadata} bytes of metadata and {journal} of journal or"
            " log were written"
        )


def _journal(journal: Journal, total: int) -> Iterator[str]:
    if journal.family == BTRFS:
        if journal.log_sync_bytes >= WORTH_SAYING * total and journal.log_syncs:
            each = size(journal.log_sync_bytes / journal.log_syncs)
            yield (
                f"{share(journal.log_sync_bytes, total)} of the bytes were log trees and"
                f" superblocks written for {counted(journal.log_syncs, 'fsync')}, {each} each"
            )
        return
    if journal.copy_bytes >= WORTH_SAYING * total:
        what = "the journal's copies of blocks" if journal.family == EXT else "metadata in the log"
        yield f"{share(journal.copy_bytes, total)} of the bytes were {what}"
    if journal.again_bytes is not None and journal.again_bytes >= WORTH_SAYING * total:
        if journal.family == EXT:
            again = "journal copies of blocks that an earlier transaction had copied already"
        else:
            again = (
                "metadata in the log, of blocks and inodes that an earlier checkpoint had logged"
                " already"
            )
        yield f"{share(journal.again_bytes, total)} of the bytes were {again}"
    if journal.forced_atime_bytes >= WORTH_SAYING * total:
        forced = journal.reasons.count(Why.FORCED)
        yield (
            f"{share(journal.forced_atime_bytes, total)} of the bytes were written because"
            f" {counted(forced, 'forced commit')} (fsync) also wrote other files' access times, to"
            " the journal and again in place"
        )


def _directory(explanation: Explanation, total: int) -> Iterator[str]:
    found, _ = largest(explanation, By.DIRECTORY, 3)
    named = [group for group in found if group.name != NO_FILE]
    # A single directory is not a useful finding.
    if len(named) > 1 and named[0].bytes >= WORTH_NAMING * total:
        yield (
            f"{named[0].name} is the costliest directory: {share(named[0].bytes, total)} of"
            f" the bytes ({_kinds(named[0].parts)})"
        )


def _files(explanation: Explanation, total: int, forced: int | None) -> Iterator[str]:
    """Yield findings about files for which metadata is the main cost: a single file, or many small
    ones. `forced`: bytes of metadata that were written because of calls, not because of the number
    of files; None if unknown."""
    sums = explanation.sums(*keys(By.FILE))
    path = sums["path"].combine_chunks()
    # Group 0 has no path. As numbers of bytes, floats are exact.
    group, length = path.indices.fill_null(-1).to_numpy() + 1, sums["length_sum"].to_numpy()
    is_data = np.asarray(among(sums["structure"], ["file_data"]))
    groups = len(path.dictionary) + 1
    data_of = np.bincount(group, length * is_data, groups)
    other_of = np.bincount(group, length, groups) - data_of
    is_file = data_of > 0
    is_file[0] = False
    count = int(is_file.sum())
    if not count:
        return
    is_worst = is_file & (other_of == other_of[is_file].max())
    worst = int(group[np.argmax(is_worst[group])])
    worst_data, worst_other = int(data_of[worst]), int(other_of[worst])
    if worst_other >= WORTH_NAMING * total and worst_other > worst_data:
        yield (
            f"{path.dictionary[worst - 1].as_py()} cost {size(worst_other)} of metadata and"
            f" journal, {_ratio(worst_other / worst_data)} times its {size(worst_data)} of data"
        )
    data = int(data_of[1:].sum())
    other = total - kinds(explanation)[DATA]
    are_small = count >= MANY_FILES and data / count <= SMALL_FILE_BYTES
    is_for_files = forced is not None and forced < other / 2
    if are_small and other >= WORTH_NAMING * total and is_for_files:
        yield (
            f"{count:,} files of {size(data / count)} of data each, on average, cost"
            f" {size(other / count)} of metadata and journal each"
        )


def _kinds(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {size(length)}" for name, length in parts.items())


def counted(count: int, what: str) -> str:
    """Format a count with its noun: 1 fsync, 2 fsyncs."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def share(part: int, whole: int) -> str:
    """Format a share as a percentage with two digits."""
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def size(value: float) -> str:
    """Format bytes with three digits and a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(value) < 1024:
            # Three digits of 1,020 would be 1.02e+03.
            is_whole = unit == "B" or value >= 999.5
            return f"{value:.0f} {unit}" if is_whole else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def _ratio(value: float) -> str:
    if 0 < value < 0.001:
        return "less than 0.001"
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"
