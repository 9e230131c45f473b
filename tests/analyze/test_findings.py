"""Each finding and its figure, from hand-made tables; and for each, a table just below the
reporting threshold."""

import re
from typing import Any

import pytest

from fscost import analyze
from fscost.analyze.explain import Mark
from fscost.analyze.findings import size

from .made import BLOCK, S, commit, explanation, row

MARKS = [Mark(0, "work"), Mark(100 * S, "end")]
ATIME = {"atime_alone": True, "cause": "atime"}


def files(
    count: int, blocks: int, directory: str = "/d", structure: str = "file_data"
) -> list[dict[str, Any]]:
    return [
        row(structure, path=f"{directory}/{number}", length=blocks * BLOCK)
        for number in range(count)
    ]


def said(rows: list[dict[str, Any]], family: str = "ext") -> list[str]:
    return analyze.findings(explanation(rows, family=family, marks=MARKS))


def unnumbered(finding: str) -> str:
    """Return the first words of a finding without figures, which differ between tables."""
    return re.sub(r"[\d.]+", "", finding)[:40]


CASES = {
    "unknown": (
        [*files(1, 99), row("unknown", cause="unknown")],
        "1 % of the bytes are unidentified: all figures below may be off by that much",
    ),
    "doubtful": (
        [*files(1, 99), row("file_data", doubtful=True)],
        "1 % of the bytes are file data whose file is uncertain (doubtful)",
    ),
    "atime": (
        [*files(1, 3), row("inode_table", **ATIME)],
        "25 % of the bytes were access times alone: noatime would have avoided them",
    ),
    "proportion": (
        [*files(1, 4), row("inode_table"), row("journal_superblock"), row("journal_superblock")],
        "for each byte of file data, 0.25 bytes of metadata and 0.5 of journal or log were written",
    ),
    "copies": (
        [*files(1, 16), *commit(1, [("directory", 1), ("directory", 2)], 9 * S)],
        "10 % of the bytes were the journal's copies of blocks",
    ),
    "again": (
        [
            *files(1, 13),
            *commit(1, [("directory", 1)], 9 * S),
            *commit(2, [("directory", 1), ("directory", 2)], 10 * S),
        ],
        (
            "5 % of the bytes were journal copies of blocks that an earlier transaction had copied"
            " already"
        ),
    ),
    "neighbour": (
        [
            *files(1, 9),
            *commit(1, [("inode_table", 1)], 50 * S),
            *commit(2, [("inode_table", 2)], 51 * S, **ATIME),
            *commit(3, [("inode_table", 3)], 90 * S),
            row("inode_table", transaction=2, offset=2 * BLOCK, **ATIME),
            row("inode_table", transaction=3, offset=3 * BLOCK),
        ],
        (
            "10 % of the bytes were written because 1 forced commit (fsync) also wrote other"
            " files' access times, to the journal and again in place"
        ),
    ),
    "unchanged": (
        [*files(1, 9), row("superblock", cause="unchanged")],
        (
            "10 % of the bytes were metadata rewritten with unchanged content, journal copies"
            " included"
        ),
    ),
    "lazy": (
        [*files(1, 3), row("inode_table", cause="lazy_init")],
        (
            "25 % of the bytes were zeros that mkfs had left to the kernel (ext4: -E"
            " lazy_itable_init=0,lazy_journal_init=0 makes mkfs write them, and -o noinit_itable"
            " leaves the inode tables as they are)"
        ),
    ),
    "copy": (
        [*files(1, 3), row("superblock", copy=1)],
        "25 % of the bytes were second and further copies of the same content (DUP, RAID)",
    ),
    "directory": (
        [*files(1, 3), row("directory", path="/d"), *files(1, 1, directory="/e")],
        "/d is the costliest directory: 80 % of the bytes (data 12 KiB, metadata 4 KiB)",
    ),
    "file": (
        [*files(1, 1), row("extent_map", path="/d/0"), row("extent_map", path="/d/0")],
        "/d/0 cost 8 KiB of metadata and journal, 2 times its 4 KiB of data",
    ),
    "small files": (
        [*files(100, 1), *[row("inode_table")] * 50],
        "100 files of 4 KiB of data each, on average, cost 2 KiB of metadata and journal each",
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_finding_states_its_figure(name: str) -> None:
    rows, sentence = CASES[name]
    assert sentence in said(rows)
    # Beside a thousand times as many bytes, no finding is worth reporting, except the proportion,
    # which is always reported.
    beside = said([*rows, row("file_data", path="/x", length=10**9)])
    assert name == "proportion" or unnumbered(sentence) not in map(unnumbered, beside)


def test_from_a_hundredth_on_copies_are_worth_saying() -> None:
    """The table has two transactions of a descriptor, a copy and a commit, beside data: one block
    in a hundred was copied before."""
    commits = [*commit(1, [("directory", 1)], 9 * S), *commit(2, [("directory", 1)], 10 * S)]
    again = (
        "1 % of the bytes were journal copies of blocks that an earlier transaction had copied"
        " already"
    )
    assert again in said([*files(1, 94), *commits])
    assert not [line for line in said([*files(1, 95), *commits]) if "copied already" in line]


def test_log_trees_and_metadata_in_the_log_are_found() -> None:
    superblock = {"offset": 65536, "transaction": 7}
    log_trees = [
        *files(1, 5),
        row("log_tree", transaction=8, length=4 * BLOCK),
        row("superblock", **superblock),
    ]
    synced = "50 % of the bytes were log trees and superblocks written for 1 fsync, 20 KiB each"
    assert synced in said(log_trees, family="btrfs")
    assert "50 % of the bytes were metadata in the log" in said(
        [*files(1, 1), row("log", "directory", transaction=1)], family="xfs"
    )


def test_small_files_are_not_blamed_for_what_fsync_cost() -> None:
    commits = [
        each
        for number in range(1, 60)
        for each in commit(number, [("inode_table", 5)], 20 * S + number * 10**7)
    ]
    assert not [line for line in said([*files(100, 1), *commits]) if "files of" in line]


@pytest.mark.parametrize("is_timed", [True, False])
def test_small_files_are_blamed_only_if_the_share_of_fsync_is_known(is_timed: bool) -> None:
    rows = [*files(100, 1), *commit(1, [("inode_table", each) for each in range(30)], 90 * S)]
    found = analyze.findings(explanation(rows, marks=MARKS, is_timed=is_timed))
    assert any("files of" in line for line in found) == is_timed


def test_what_xfs_logs_again_is_no_whole_block() -> None:
    item = {"cause": "directory_entries", "length": BLOCK}
    rows = [
        row("log", "inode_chunk", home_offset=512, transaction=number, **item) for number in (1, 2)
    ]
    found = said([*files(1, 18), *rows], family="xfs")
    assert (
        "5 % of the bytes were metadata in the log, of blocks and inodes that an earlier checkpoint"
        " had logged already" in found
    )
    assert not [line for line in found if "journal copies" in line]


def test_one_directory_alone_is_no_finding() -> None:
    assert not [line for line in said(files(3, 1)) if "directory" in line]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1023, "1023 B"),
        (1000 << 10, "1000 KiB"),
        (1023 << 20, "1023 MiB"),
        (999.4 * 1024, "999 KiB"),
        (1 << 40, "1 TiB"),
    ],
)
def test_bytes_are_never_in_powers_of_ten(value: float, text: str) -> None:
    assert size(value) == text
