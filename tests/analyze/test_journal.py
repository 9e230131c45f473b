"""Journals and logs, from hand-made tables whose numbers can be counted by hand, and from a real
one."""

import pytest

from fscost import analyze
from fscost.analyze import Journal
from fscost.analyze.commits import Why
from fscost.analyze.explain import Mark
from fscost.cli.output import explained

from .made import BLOCK, S, commit, explanation, row

MARKS = [Mark(0, "work"), Mark(100 * S, "end")]


def of(*arguments: object, **options: object) -> Journal:
    found = analyze.journal(explanation(*arguments, **options))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("batches", [1, 2, 5, 100])
def test_copies_of_what_was_copied_before_are_counted(batches: int) -> None:
    rows = [
        row("file_data"),
        *commit(7, [("inode_table", 5), ("block_bitmap", 6)], 10 * S),
        *commit(8, [("inode_table", 5)], 11 * S),
        # One row of three blocks: 4 is new, 5 and 6 are not.
        row("journal_descriptor", transaction=9, cause="log", time_ns=30 * S),
        row(
            "journal_copy",
            "inode_table",
            transaction=9,
            length=3 * BLOCK,
            home_offset=4 * BLOCK,
            time_ns=30 * S,
        ),
        row("journal_commit", transaction=9, cause="log", time_ns=31 * S),
        row("journal_superblock", cause="log"),
        row("inode_table", transaction=8, offset=5 * BLOCK, time_ns=40 * S),
    ]
    journal = of(rows, marks=MARKS, batches=batches)
    assert (journal.copies, journal.again, journal.again_bytes, journal.copy_bytes) == (
        6,
        3,
        3 * BLOCK,
        6 * BLOCK,
    )
    assert (journal.most_again, journal.most_again_structure) == (3, "inode_table")
    assert [(t.number, t.blocks, t.bytes, t.why) for t in journal.transactions] == [
        (7, 2, 4 * BLOCK, Why.TIMER),
        (8, 1, 3 * BLOCK, Why.FORCED),
        (9, 3, 5 * BLOCK, Why.SETTLE),
    ]
    assert [(t.begin_ns, t.end_ns) for t in journal.transactions][2] == (30 * S, 31 * S)
    assert journal.bytes == 13 * BLOCK
    assert journal.checkpoint_bytes == BLOCK
    assert journal.json()["transaction_blocks_median"] == 2


def test_atime_that_an_fsync_took_along_is_copies_and_checkpoints() -> None:
    atime = {"atime_alone": True, "cause": "atime"}
    rows = [
        *commit(1, [("inode_table", 5)], 50 * S, **atime),
        *commit(2, [("inode_table", 6), ("inode_table", 7)], 51 * S, **atime),
        *commit(3, [("inode_table", 8)], 90 * S, **atime),
        *(row("inode_table", transaction=number, time_ns=95 * S, **atime) for number in (1, 2, 3)),
    ]
    journal = of(rows, marks=MARKS)
    assert [each.why for each in journal.transactions] == [Why.TIMER, Why.FORCED, Why.SETTLE]
    assert journal.atime_copy_bytes == 4 * BLOCK
    assert journal.forced_atime_bytes == 3 * BLOCK


def test_a_transaction_before_the_phase_is_not_counted_for_what_it_left_behind() -> None:
    journal = of([row("inode_table", transaction=3), *commit(4, [("directory", 1)], 9 * S)])
    assert [each.number for each in journal.transactions] == [4]
    assert journal.checkpoint_bytes == BLOCK


@pytest.mark.parametrize("batches", [1, 3, 100])
def test_a_log_of_xfs_has_checkpoints_and_its_own_headers(batches: int) -> None:
    item = {"transaction": 100, "cause": "directory_entries", "length": 200}
    rows = [
        row("log", transaction=100, cause="log", length=312),
        row("log", "inode_chunk", home_offset=64, **item),
        # A block that occurs twice in one checkpoint counts as copied once.
        row("log", "inode_chunk", home_offset=64, **item),
        row("log", "directory", home_offset=4096, **item),
        row("log", transaction=108, cause="log", length=512),
        row("log", "inode_chunk", home_offset=64, **{**item, "transaction": 200}),
        row("inode_chunk", length=BLOCK),
    ]
    journal = of(rows, family="xfs", marks=MARKS, batches=batches)
    assert [(each.number, each.blocks, each.bytes) for each in journal.transactions] == [
        (100, 3, 312 + 600 + 512),
        (200, 1, 200),
    ]
    assert (journal.again, journal.most_again) == (1, 2)
    assert journal.checkpoint_bytes == BLOCK


@pytest.mark.parametrize(
    ("home", "line"),
    [
        (
            "inode_chunk",
            (
                "logged before  66.7 % of 3 blocks and inodes (each counted once per checkpoint);"
                " one inode 3 times"
            ),
        ),
        (
            "agf",
            (
                "logged before  66.7 % of 3 blocks and inodes (each counted once per checkpoint);"
                " one block (agf) 3 times"
            ),
        ),
    ],
)
def test_what_is_printed_of_what_was_logged_before(home: str, line: str) -> None:
    rows = [
        row("log", home, home_offset=512, transaction=number, cause="directory_entries", length=200)
        for number in (1, 2, 3)
    ]
    whole = explanation(rows, family="xfs", marks=MARKS)
    printed = list(explained.lines(analyze.report(whole, ["work"], analyze.By.STRUCTURE, 5), None))
    assert line in printed


@pytest.mark.parametrize("batches", [1, 2, 100])
def test_btrfs_serves_fsyncs_by_log_trees_between_its_commits(batches: int) -> None:
    superblock = {"offset": 65536, "cause": "size_or_extents"}
    rows = [
        row("superblock", transaction=7, **superblock),
        row("log_tree", transaction=8, length=16384),
        row("superblock", transaction=7, **superblock),
        row("log_tree", transaction=8, length=16384),
        row("superblock", transaction=7, **superblock),
        row("fs_tree", transaction=8, length=16384),
        row("superblock", transaction=8, **superblock),
        row("superblock_backup", transaction=8, copy=1),
        row("fs_tree", transaction=9, length=16384),
        row("superblock", transaction=9, **superblock),
    ]
    journal = of(rows, family="btrfs", marks=MARKS, batches=batches)
    assert (journal.log_syncs, journal.log_sync_bytes) == (2, 2 * (16384 + 4096))
    assert [(each.number, each.bytes) for each in journal.transactions] == [
        (7, 4096),
        (8, 16384 + 2 * 4096),
        (9, 16384 + 4096),
    ]
    assert journal.again is None


def test_what_the_recording_does_not_tell_is_not_said() -> None:
    rows = [
        row("journal_descriptor", transaction=1),
        row("journal_copy", "directory", transaction=1),
        row("journal_commit", transaction=1),
    ]
    assert of(rows).again is None
    assert analyze.journal(explanation([row("file_data")])) is None
    assert (
        analyze.journal(explanation([row("journal_commit", transaction=1)], family="none")) is None
    )


def test_words_that_do_not_fit_go_on_below() -> None:
    """They were cut off in a terminal of 80 columns: "journal 56.7 %, metadata…"."""
    rows = [
        ("cause", "bytes", "share", "", "parts"),
        ("size_or_extents", "564 KiB", "7.3 %", "▍", "journal 56.7 %, metadata 43.3 %"),
    ]
    [_, first, second] = explained.columns(rows, 60, 4)
    assert first.endswith("journal 56.7 %,")
    assert second == " " * first.index("journal") + "metadata 43.3 %"
    assert len(list(explained.columns(rows, None, 4))) == 2


def test_the_median_size_is_that_of_json() -> None:
    rows = [
        *commit(1, [("inode_table", 1)], 10 * S),
        *commit(2, [("inode_table", each) for each in range(4)], 20 * S),
    ]
    journal = of(rows, marks=MARKS)
    found = journal.json()
    assert (found["transaction_blocks_median"], found["transaction_bytes_median"]) == (
        2.5,
        4.5 * BLOCK,
    )
    report = analyze.report(explanation(rows, marks=MARKS), ["work"], analyze.By.STRUCTURE, 5)
    assert "size 2.5 blocks (18.0 KiB) median, 4 (24.0 KiB) maximum" in [
        " ".join(line.split()) for line in explained.lines(report, None)
    ]


def test_without_times_no_commit_has_a_reason() -> None:
    rows = commit(1, [("inode_table", 1)], 10 * S)
    for is_timed in (True, False):
        found = of(rows, marks=MARKS, is_timed=is_timed).json()
        names = [f"commits_{why}" for why in ("forced", "timer", "settle", "other")]
        counts = [found[name] for name in [*names, "forced_atime_write_bytes"]]
        assert counts == ([0, 0, 1, 0, 0] if is_timed else [None] * 5)


def test_a_line_without_reasons_ends_without_a_comma() -> None:
    rows = [row("fs_tree", transaction=8), row("superblock", transaction=8, offset=65536)]
    for is_timed, end in ((True, "of trees, 1 at the end of a phase (inferred)"), (False, "trees")):
        whole = explanation(rows, family="btrfs", marks=MARKS, is_timed=is_timed)
        report = analyze.report(whole, ["work"], analyze.By.STRUCTURE, 5)
        [line] = [each for each in explained.lines(report, None) if each.startswith("commits")]
        assert line.endswith(end)
