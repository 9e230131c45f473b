"""What a manifest, which is untrusted, says of second runs."""

from typing import Any

import pytest

from fscost.results import CellRecord
from fscost.view.elsewhere import FACT, said


@pytest.mark.parametrize(
    ("differ", "words"),
    [
        ([], "wrote the same bytes"),
        (
            [{"metric": "device_write_bytes", "phase": "w", "first": 4096, "second": 8192}],
            "8.00 KiB",
        ),
        ([{"metric": "device_write_bytes", "first": 10**400, "second": 1}], "1 instead of 1"),
        ([{"metric": "device_write_bytes", "first": None, "second": "x"}], "x instead of None"),
        ("x", "its counters"),
        ([7], "its counters"),
    ],
)
def test_any_fact_is_a_sentence(differ: Any, words: str) -> None:
    facts = {FACT: {"machine": "two", "differ": differ}}
    cell = CellRecord("ext4.0", "ext4", 0, 1, 0, "done", 1.0, "", "", "", "", facts)
    assert words in said(cell)
