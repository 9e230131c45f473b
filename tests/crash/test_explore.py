"""What the states of a recording must hold."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import FLUSH, WRITE, Body, write

from fscost.crash import explore, fsynced
from fscost.crash.fsynced import FSYNC
from fscost.crash.programs import About, Job, Say, Take, whole
from fscost.errors import HostError, InputError

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

    def answered(about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /) -> list[Any]:
        sound = {
            "mounts": True,
            "is_clean": True,
            "needs_repair": False,
            "files": None,
            "words": [],
        }
        lost = [["lost", "database"]]
        return [
            take(
                place,
                {**sound, "broken": lost if job["kept_promises"] and not job["kept"] else []},
            )
            for place, job in enumerate(jobs)
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

    def answered(about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /) -> list[Any]:
        files = [shot([5] if job["at_ns"] else None) for job in jobs]
        return [take(place, {**after, "files": each}) for place, each in enumerate(files)]

    found = source(recording)
    cuts = [41 * 10**6 - 1]
    known, unreadable = explore.reference(found, cuts, explore.Limits(), answered)
    assert known is not None
    assert known.promises == {12: [12 * 10**6]}
    assert list(known.broken(cuts[0], shot([0]))) == [("lost", "log, sector 0")]
    assert list(known.broken(cuts[0], shot([5]))) == []
    assert [state.how for state in unreadable] == ["all"] * (4 if needs_repair else 0)


def test_snapshots_share_what_they_have_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot(number: int) -> dict[str, Any]:
        changed = {"1:1": ["log", [number] * 1000]}
        same = {f"{inode}:1": [f"file {inode}", [inode] * 1000] for inode in range(2, 12)}
        names = {f"file {inode}": f"{inode}:1" for inode in range(2, 12)}
        return {"files": {**changed, **same}, "folders": {"99:1": names}}

    monkeypatch.setattr("fscost.crash.fsynced._MOST_BYTES", 900_000)
    album = fsynced.Album()
    kept = [album.kept(snapshot(number)) for number in range(60)]
    for number, each in enumerate(kept):
        plain = {key: [path, list(its)] for key, (path, its) in each["files"].items()}
        assert {"files": plain, "folders": each["folders"]} == snapshot(number)
    other = {"files": {"5:5": ["log", [1] * 50_000]}, "folders": {}}
    with pytest.raises(InputError, match="takes more than 0 MiB"):
        album.kept(other)


def test_the_first_place_of_each_kind_is_kept() -> None:
    """A guest may name a hundred thousand."""
    pairs = [["lost", f"file {number}"] for number in range(999)]
    told = {"files": None, "broken": [*pairs, ["stale", "x" * 9999], ["stale", "y"]]}
    assert explore.broken(None, 0, told) == [("lost", "file 0"), ("stale", "x" * 4096)]


def test_a_state_that_no_repair_mends_is_no_reference(recording: Path) -> None:
    def answered(about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /) -> list[Any]:
        broken = {**FOUND, "is_clean": False, "needs_repair": True}
        return [take(place, {**broken, "files": shot([5])}) for place in range(len(jobs))]

    with pytest.raises(HostError, match="cannot be mounted as it was before"):
        explore.reference(source(recording), [END_NS], explore.Limits(), answered)
