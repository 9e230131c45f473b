"""Times of writes, derived from the content of writes to made-up disks."""

import numpy as np
import pytest
from tests.oracles.content import Content
from tests.oracles.ledger import Ledger
from tests.oracles.tagged_check import Times
from tests.oracles.tagged_tree import MAGIC, SECTOR, TAG, checksum


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
    ledger = Ledger(syncs=[(5, None), (9, None)])
    parity = np.array([False, False, is_parity])
    times = Times(found, ledger, 0, is_parity=parity, is_compressed=False)
    assert times.latest(10) == 5
    assert times.latest(20) == latest
