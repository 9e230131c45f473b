"""What the states of a recording must hold."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import FLUSH, WRITE, Body, write

from fscost.crash import explore
from fscost.crash.fsynced import FSYNC
from fscost.crash.programs import Say
from fscost.errors import HostError

END_NS = 50 * 10**6
FOUND = {"mounts": True, "is_clean": True, "needs_repair": False, "broken": [], "words": []}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a write, and a flush that came late."""
    events = [
        struct.pack("<QQQQIHBB", begin * 10**6, end * 10**6, 0, length, 0, 0, op, 0)
        for begin, end, length, op in ((10, 11, 4096, WRITE), (40, 41, 0, FLUSH))
    ]
    return write(tmp_path / "recording", [(1, Body(events, b"x" * 4096))], size=1 << 20)


def source(recording: Path) -> explore.Source:
    """Return a command that synced inode 12 at 12 ms."""
    promises = [(12 * 10**6, FSYNC, 12)]
    return explore.Source(recording, "command", "ext4", "", [], promises, 0, END_NS, 0)


def test_an_image_must_hold_what_the_last_cut_that_leaves_it_has_promised(recording: Path) -> None:
    """The write was promised at 12 ms, but no flush followed until 40 ms."""
    promises = [(12 * 10**6, "database", 1)]
    found = replace(source(recording), workload="files", promises=promises, margin_ns=2 * 10**6)

    def answered(
        about: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], say: Say
    ) -> list[dict[str, Any]]:
        sound = {
            "mounts": True,
            "is_clean": True,
            "needs_repair": False,
            "files": None,
            "words": [],
        }
        lost = [["lost", "database"]]
        return [
            {**sound, "broken": lost if job["kept_promises"] and not job["kept"] else []}
            for job in jobs
        ]

    for device in ("reorder-4k", "reorder-512", "in-order"):
        explored = explore.explore(found, explore.Limits(device=device), answered)
        [state] = [outcome.state for outcome in explored.outcomes if outcome.is_broken]
        assert (state.how, state.at_ns) == ("none", 41 * 10**6 - 1)


def shot(content: list[int] | None) -> dict[str, Any]:
    """Return a snapshot of one file, or of none."""
    return {"files": {} if content is None else {"12:7": ["log", content]}, "folders": {}}


@pytest.mark.parametrize("needs_repair", [False, True])
def test_what_was_promised_is_there_after_a_repair(recording: Path, needs_repair: bool) -> None:
    """Without a journal, no instant but the first is without errors (ext2)."""
    after = {**FOUND, "needs_repair": needs_repair}

    def answered(
        about: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], say: Say
    ) -> list[dict[str, Any]]:
        return [{**after, "files": shot([5] if job["at_ns"] else None)} for job in jobs]

    found = source(recording)
    cuts = [41 * 10**6 - 1]
    known, unreadable = explore.reference(found, cuts, explore.Limits(), answered)
    assert known is not None
    assert known.promises == {12: [12 * 10**6]}
    assert list(known.broken(cuts[0], shot([0]))) == [("lost", "log, sector 0")]
    assert list(known.broken(cuts[0], shot([5]))) == []
    assert [state.how for state in unreadable] == ["all"] * (4 if needs_repair else 0)


def test_a_state_that_no_repair_mends_is_no_reference(recording: Path) -> None:
    def answered(
        about: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], say: Say
    ) -> list[dict[str, Any]]:
        broken = {**FOUND, "is_clean": False, "needs_repair": True}
        return [{**broken, "files": shot([5])} for _ in jobs]

    with pytest.raises(HostError, match="cannot be mounted as it was before"):
        explore.reference(source(recording), [END_NS], explore.Limits(), answered)
