"""Reasons with a remedy, from rows whose sums are known."""

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from fscost import analyze
from fscost.analyze.explain import Mark
from fscost.analyze.rows import SCHEMA

from .made import S, commit, explanation, of_table, row


def explained(rows: list[dict[str, Any]], family: str) -> analyze.Explanation:
    """Return an explanation. `rows` give their differences from a block of file data."""
    plain = {
        "event": 0,
        "time_ns": 0,
        "phase": "run",
        "disk": "main",
        "offset": 0,
        "length": 4096,
        "structure": "file_data",
        "home_structure": None,
        "home_offset": None,
        "file_offset": None,
        "cause": "data",
        "atime_alone": False,
        "inode": None,
        "tree": 0,
        "path": None,
        "transaction": None,
        "copy": 0,
        "doubtful": False,
    }
    filled = [plain | row for row in rows]
    table = pa.table(
        {
            name: pa.array([row[name] for row in filled], SCHEMA.field(name).type)
            for name in SCHEMA.names
        },
        schema=SCHEMA,
    )
    return of_table(table, {"main": family}, ["run"], ["log", "journal_copy"])


DATA: dict[str, Any] = {}
ATIME = {"structure": "inode_table", "cause": "atime", "atime_alone": True}
SECOND = {"structure": "fs_tree", "cause": "directory_entries", "copy": 1}


@pytest.mark.parametrize(
    ("rows", "family", "words", "remedy", "size"),
    [
        (
            [DATA] * 3 + [ATIME],
            "ext",
            "access-time updates caused 25 % of its bytes",
            "-o noatime",
            4096,
        ),
        (
            [DATA, SECOND, SECOND, SECOND],
            "btrfs",
            "75 % of its bytes are second copies of metadata and log trees (DUP)",
            "mkfs.btrfs -m single",
            3 * 4096,
        ),
        (
            [DATA, {"structure": "inode_table", "cause": "lazy_init"}],
            "ext",
            "50 % of its bytes are zeros that mkfs left to the kernel",
            "mkfs.ext4 -E lazy_itable_init=0,lazy_journal_init=0, or mount -o noinit_itable",
            4096,
        ),
    ],
)
def test_a_reason_names_its_share_and_what_helps(
    rows: list[dict[str, Any]], family: str, words: str, remedy: str, size: int
) -> None:
    assert analyze.why(explained(rows, family)).reasons == [analyze.Reason(size, words, remedy)]


def test_only_dup_of_metadata_on_one_disk_is_avoided_by_single() -> None:
    """RAID1 and DUP of data are further copies too, and so are backups of the superblock."""
    backup = {"structure": "superblock_backup", "copy": 1}
    assert analyze.why(explained([DATA, backup], "btrfs")).reasons == []
    dup = explained([DATA, SECOND], "btrfs")
    several = dataclasses.replace(dup, families={"main": "btrfs", "second": "btrfs"})
    for found in (
        several,
        explained([DATA, DATA | {"copy": 1}], "btrfs"),
        explained([DATA, {"structure": "allocation_table", "copy": 1}], "fat"),
    ):
        words = "50 % of its bytes are second and further copies of the same content"
        assert analyze.why(found).reasons == [analyze.Reason(4096, words)]


def test_what_is_small_is_no_reason() -> None:
    assert analyze.why(explained([DATA] * 99 + [ATIME], "ext")).reasons == []
    assert analyze.why(explained([], "ext")).reasons == []


def test_the_largest_comes_first() -> None:
    found = analyze.why(explained([DATA, ATIME, SECOND, SECOND], "btrfs")).reasons
    assert [reason.write_bytes for reason in found] == [2 * 4096, 4096]


def test_fast_commits_are_told_from_commits() -> None:
    """One fast commit for each fsync, and few full commits: no finding calls fast commits large."""
    fast = [row("journal_fast_commit", cause="log", time_ns=second * S) for second in range(1, 9)]
    rows = [row("file_data"), *commit(7, [("inode_table", 5)], 10 * S), *fast]
    found = analyze.why(explanation(rows, marks=[Mark(0, "run"), Mark(100 * S, "end")])).reasons
    assert [(each.words, each.remedy) for each in found] == [
        (
            "92 % of its bytes went to the journal: 32 KiB of fast commits, 1 commit of 12 KiB",
            "",
        )
    ]


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        (
            "size_or_extents",
            (
                "-O fast_commit, or a program that writes over zeros, for which fdatasync commits"
                " nothing"
            ),
        ),
        ("new_inode+size_or_extents", "-O fast_commit"),
    ],
)
def test_a_program_whose_files_grow_under_fsync_may_write_over_zeros(
    cause: str, remedy: str
) -> None:
    commits = [commit(each, [("inode_table", 5)], each * S, cause=cause) for each in range(1, 9)]
    rows = [row("file_data"), *(each for rows in commits for each in rows)]
    found = analyze.why(explanation(rows, marks=[Mark(0, "work"), Mark(8 * S + 10**7, "end")]))
    [reason] = found.reasons
    assert "forced by fsync" in reason.words
    assert reason.remedy == remedy


@pytest.mark.parametrize(("period_s", "remedy"), [(5, "-o commit=60"), (60, ""), (600, "")])
def test_a_longer_period_is_no_remedy_for_a_profile_that_has_one(
    period_s: int, remedy: str
) -> None:
    begins = [each * 700 for each in range(1, 5)]
    commits = [commit(at, [("inode_table", 5)], at * S) for at in begins]
    rows = [row("file_data"), *(each for rows in commits for each in rows)]
    mark = Mark(0, "work", {"commit_s": period_s})
    [reason] = analyze.why(explanation(rows, marks=[mark, Mark(9000 * S, "end")])).reasons
    assert reason.remedy == remedy


def test_padding_of_the_log_is_named_with_a_smaller_unit() -> None:
    """Padding beyond a block in each checkpoint is that of a log stripe unit."""
    item = row("log", "inode_chunk", home_offset=512, transaction=7, cause="times", length=1024)
    for length, words, remedy in (
        (3072, "75 %", ""),
        (31 << 10, "97 %", "mkfs.xfs -l su=4096"),
    ):
        padding = row("log", transaction=7, cause="padding", length=length)
        marks = [Mark(0, "run"), Mark(100 * S, "end")]
        [reason] = analyze.why(explanation([item, padding], "xfs", marks)).reasons
        assert f" ({words} padding)" in reason.words
        assert reason.remedy == remedy
