"""The checker detects each kind of wrong row, in altered rows of a real cell."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.oracles.bounds import SHARES, Bound
from tests.oracles.tagged_check import (
    INODE,
    LATER,
    NO_INODE,
    NO_PATH,
    NOT_DATA,
    PATH,
    RIGHT,
    STRUCTURE,
    UNKNOWN,
)
from tests.oracles.tagged_run import SHELL, Ran, run

from fscost.analyze import explain

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Three files; the first is renamed after everything is on the disk."""
    does = "create:1 create:2 create:3 sync:1 rename:5 sync:2"
    return run("ext4", tmp_path_factory.mktemp("ran") / "run", [f"{SHELL} --do {does}"])


def changed(
    ran: Ran, change: Callable[[dict[str, Any]], dict[str, Any]], which: str = "file_data"
) -> pa.Table:
    table = explain(ran.recording).table
    rows = [
        row | change(row)
        if row["structure"] == which and row["phase"] in ("one", "two", "end")
        else row
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows)


def test_all_is_right(ran: Ran) -> None:
    summary = ran.compared()
    assert set(summary.bytes) == {RIGHT}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda row: {"inode": row["inode"] + 1}, INODE),
        (lambda _: {"inode": None, "path": None}, NO_INODE),
        (lambda _: {"path": "/never"}, PATH),
        (lambda _: {"path": None}, NO_PATH),
        (lambda _: {"structure": "extent_map"}, STRUCTURE),
        (lambda _: {"structure": "inode_bitmap"}, STRUCTURE),
        (lambda _: {"structure": "unknown"}, UNKNOWN),
    ],
)
def test_a_wrong_row_is_seen(
    ran: Ran, change: Callable[[dict[str, Any]], dict[str, Any]], kind: str
) -> None:
    summary = ran.compared(changed(ran, change))
    assert set(summary.bytes) == {kind}


def test_metadata_that_is_called_data_is_seen(ran: Ran) -> None:
    summary = ran.compared(changed(ran, lambda _: {"structure": "file_data"}, which="inode_table"))
    assert summary.bytes[NOT_DATA] > 0


def test_what_is_doubtful_is_no_silent_error(ran: Ran) -> None:
    wrong = {"inode": 1 << 30, "path": None}
    silent = ran.compared(changed(ran, lambda _: wrong))
    doubtful = ran.compared(changed(ran, lambda _: wrong | {"doubtful": True}))
    missing = ran.compared(changed(ran, lambda _: {"path": None}))
    alarmed = ran.compared(changed(ran, lambda _: {"doubtful": True}))
    shares = [each.shares() for each in (silent, alarmed, doubtful, missing)]
    assert [list(each.values()) for each in shares] == np.eye(4).tolist()
    assert [list(each)[list(each.values()).index(1)] for each in shares] == list(SHARES)


@pytest.mark.parametrize("share", SHARES)
def test_a_bound_that_is_exceeded_is_said(ran: Ran, share: str) -> None:
    change = {
        "silent": {"path": "/never"},
        "doubtful_right": {"doubtful": True},
        "doubtful_wrong": {"path": "/never", "doubtful": True},
        "missing": {"path": None},
    }
    summary = ran.compared(changed(ran, lambda _: change[share]))
    none = Bound(0, 0, 0, 0, "nothing may differ")
    summary.check(replace(none, **{share: 1}))
    with pytest.raises(AssertionError, match="nothing may differ"):
        summary.check(none)


def test_a_name_of_later_is_seen(ran: Ran) -> None:
    [(identity, name)] = [
        (steps[0][0], name) for (_, name), steps in ran.ledger.steps.items() if steps[0][1] > 4
    ]
    inode = ran.ledger.inodes[identity]
    summary = ran.compared(
        changed(ran, lambda row: {"path": f"/{name}"} if row["inode"] == inode else {})
    )
    assert summary.bytes[LATER] > 0
