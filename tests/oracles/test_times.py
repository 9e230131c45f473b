"""Times of writes, derived from the content of writes to made-up disks."""

import numpy as np
import pytest
from tests.oracles.content import Content
from tests.oracles.ledger import Ledger, Sync
from tests.oracles.tagged_check import NEVER_WAS, NO_PATH, PATH, RIGHT, Names, Times
from tests.oracles.tagged_tree import MAGIC, SECTOR, TAG, Journal, Tree, checksum


def sector(identity: int, action: int, offset: int) -> bytes:
    numbers = (identity, action, offset, 0)
    return TAG.pack(MAGIC, *numbers, checksum(*numbers)).ljust(SECTOR, b".")


@pytest.mark.parametrize(("is_parity", "latest"), [(True, 9), (False, 5)])
def test_parity_that_shows_old_content_tells_no_time(is_parity: bool, latest: int) -> None:
    """The third write is the parity of two blocks, one of which has become zeroes."""
    sectors = [sector(1, 5, 0), sector(2, 9, 0), sector(1, 4, SECTOR)]
    found = Content(
        np.array([10, 20, 30]),
        np.array([0, 4096, 8192]),
        np.frombuffer(b"".join(sectors), dtype=np.uint8).reshape(3, SECTOR),
    )
    ledger = Ledger(syncs=[Sync(None, 5, 5), Sync(None, 9, 9)])
    parity = np.array([False, False, is_parity])
    times = Times(found, ledger, 0, is_parity=parity, is_compressed=False)
    assert times.latest(10) == 5
    assert times.latest(20) == latest


def ledger(*lines: str) -> Ledger:
    return Ledger.read("\n".join("\t".join(line.split()) for line in ("INODE 0 2", *lines)))


def test_a_path_whose_parts_never_met_is_wrong() -> None:
    """A directory of identity 1 was renamed, then a file was made in it."""
    found = Content(np.array([10]), np.array([0]), np.zeros((1, SECTOR), dtype=np.uint8))
    renamed = ledger(
        "BORN 1 1 12", "GAINED 1 1 0 a", "GAINED 2 1 0 b", "DROPPED 2 1 0 a 2",
        "BORN 3 2 13", "GAINED 3 2 1 new",
    )  # fmt: skip
    times = Times(found, renamed, 0, is_parity=np.array([False]), is_compressed=False)
    names = Names(renamed, times)
    results = [names.compare({2}, path, 10, 3) for path in ("/b/new", "/a/new", "/c/new")]
    assert results == [RIGHT, NEVER_WAS, PATH]


def test_a_sync_beside_another_thread_covers_what_had_ended() -> None:
    journal = Journal()
    first, second = (Tree(journal, number, is_long=False, filler="dots") for number in (0, 1))
    first.step()
    second.step()
    assert journal.completed(1) == 0
    first.step()
    assert journal.completed(1) == 2
    journal.end(0)
    second.step()
    assert journal.completed(1) == 4


@pytest.mark.parametrize(
    ("began", "wrote", "result"), [(4, 1, NO_PATH), (3, 1, RIGHT), (4, 4, RIGHT)]
)
def test_only_a_name_that_was_there_is_missing(began: int, wrote: int, result: str) -> None:
    """The sync of action 2 ended when action 3 had begun. A file that is written after it has lost
    its name has none."""
    found = Content(np.array([10]), np.array([0]), np.zeros((1, SECTOR), dtype=np.uint8))
    told = ledger(
        "BORN 1 1 12", "GAINED 1 1 0 a", "SYNCED 2 * 2 3", f"DROPPED {began} 1 0 a {began}"
    )
    times = Times(found, told, 0, is_parity=np.array([False]), is_compressed=False)
    assert Names(told, times).compare({1}, None, 10, wrote) == result
