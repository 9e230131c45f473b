"""What a state may hold of files that any command synced, and what it may not."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import mark_of, write

from fscost.crash.fsynced import FSYNC, Reference, heard, instants
from fscost.crash.snapshot import snapshot

FOLDER, FILE, OTHER = "2:1", "12:7", "13:8"
A, B, C, ZERO = 11, 22, 33, 0
LATE = 1000


def shot(content: list[int] | None, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a snapshot with one file of this content, or none."""
    files = {} if content is None else {FILE: ["log", content]}
    return {"files": files, "folders": {FOLDER: {"log": FILE} if names is None else dict(names)}}


def broken(found: Mapping[str, Any], *, by_ns: int = LATE) -> list[tuple[str, str]]:
    """The file was synced at 20 and 40, and its folder at 20; the last sector changed after 40."""
    known = Reference(
        instants=[10, 20, 40, 90],
        snapshots=[shot(None, {}), shot([A]), shot([A, B, B]), shot([A, B, C])],
        promises={12: [20, 40], 2: [20]},
    )
    return list(known.broken(by_ns, found))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([A, B, B], None),
        ([A, B, C], None),
        ([A, B], "log (2 of 3 sectors)"),
        ([], "log (0 of 3 sectors)"),
        ([ZERO, B, B], "log, sector 0"),
        ([A, B, ZERO], "log, sector 2"),
        ([A, B, 99], None),  # It changed again: what it held in between is unknown.
    ],
)
def test_a_file_is_what_was_promised_or_newer(content: list[int], place: str | None) -> None:
    expected = [] if place is None else [("lost", place)]
    assert broken(shot(content)) == expected


def test_a_file_that_cannot_be_read_is_not_what_was_promised() -> None:
    """Its checksums may be lost (btrfs). If nothing was lost, such a file promises nothing."""
    unreadable = {"files": {FILE: ["log", None]}, "folders": {FOLDER: {"log": FILE}}}
    assert broken(unreadable) == [("unreadable", "log")]
    known = Reference([10, 20, 30], [shot(None, {}), unreadable, shot([A])], {12: [20]})
    assert list(known.broken(LATE, unreadable)) == []
    known = Reference([10, 20, 30], [shot(None, {}), shot([A]), unreadable], {12: [20]})
    assert list(known.broken(LATE, shot([A]))) == []
    assert list(known.broken(LATE, shot([B]))) == [("lost", "log, sector 0")]


@pytest.mark.parametrize(
    ("content", "lost"),
    [([A, B, B], False), ([A], False), ([A, ZERO, ZERO], False), ([ZERO, B, B], True)],
)
def test_a_truncate_on_its_way_may_have_zeroed_what_it_cuts_off(
    content: list[int], lost: bool
) -> None:
    """f2fs writes the zeros after the new end before the new size."""
    known = Reference(
        instants=[10, 20, 90],
        snapshots=[shot([A]), shot([A, B, B]), shot([A])],
        promises={12: [20]},
    )
    assert bool(list(known.broken(LATE, shot(content)))) is lost


def test_unknown_content_is_no_newer_version_if_there_never_was_one() -> None:
    assert broken(shot([99, B, B])) == [("lost", "log, sector 0")]


def test_only_what_was_promised_by_then_counts() -> None:
    assert broken(shot([A]), by_ns=39) == []
    assert broken(shot([A]), by_ns=40) == [("lost", "log (1 of 3 sectors)")]
    assert broken(shot(None, {}), by_ns=19) == []


@pytest.mark.parametrize(
    ("names", "place"),
    [({"log": FILE}, None), ({}, "log (missing)"), ({"log": FILE, "more": OTHER}, None)],
)
def test_a_synced_folder_promises_its_names(names: Mapping[str, str], place: str | None) -> None:
    expected = [] if place is None else [("lost", place)]
    assert broken(shot([A, B, C], names)) == expected


def test_a_name_means_the_file_that_was_promised_or_a_later_one() -> None:
    """The name was moved from one file to another, and that was synced at 20."""
    files = {FILE: ["old", [A]], OTHER: ["new", [B]]}
    shots = [{"files": files, "folders": {FOLDER: {"state": key}}} for key in (FILE, OTHER, "14:9")]
    known = Reference([10, 20, 30], shots, {2: [20]})

    def told(key: str, by_ns: int) -> list[tuple[str, str]]:
        found = {"files": files, "folders": {FOLDER: {"state": key}}}
        return list(known.broken(by_ns, found))

    assert told(FILE, LATE) == [("lost", "state (the file before)")]
    assert told(FILE, 19) == told(OTHER, LATE) == told("14:9", LATE) == []


def test_what_nobody_touches_stays_as_it_was() -> None:
    """Everything was synced before the command began."""
    known = Reference([10, 90], [shot([A, B]), shot([A, B])], {})
    assert list(known.broken(LATE, shot([A, B]))) == []
    assert list(known.broken(LATE, shot([A, ZERO]))) == [("lost", "log, sector 1")]
    assert list(known.broken(LATE, shot(None, {}))) == [
        ("unnamed", "log"),
        ("lost", "log (missing)"),
    ]


def test_a_synced_file_may_have_no_name_but_that_is_noted() -> None:
    """Nobody synced its folder. If it is removed later, nothing is noted."""
    shots = [shot(None, {}), shot([A]), shot([A])]
    assert list(Reference([10, 20, 30], shots, {12: [20]}).broken(LATE, shot(None, {}))) == [
        ("unnamed", "log")
    ]
    shots[2] = shot(None, {})
    assert list(Reference([10, 20, 30], shots, {12: [20]}).broken(LATE, shot(None, {}))) == []


def test_a_snapshot_has_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"x" * 512 + bytes(512) + b"y")
    (tmp_path / "link").symlink_to("nowhere")
    found = snapshot(tmp_path)
    [(key, (path, sectors))] = found["files"].items()
    assert path == "folder/file"
    assert (len(sectors), sectors[1]) == (3, ZERO)
    assert key.partition(":")[0] == str((tmp_path / "folder" / "file").stat().st_ino)
    names = [sorted(names) for names in found["folders"].values()]
    assert sorted(names) == [["file"], ["folder", "link"]]


def test_a_file_whose_read_fails_is_in_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def fails(self: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), self)

    monkeypatch.setattr(Path, "read_bytes", fails)
    found = snapshot(tmp_path)
    assert list(found["files"].values()) == [["file", None]]
    assert [list(names) for names in found["folders"].values()] == [["file"]]


@pytest.mark.parametrize(
    ("noted", "known", "unknown"),
    [
        (
            {"count": 2, "took_us": [3, 4], "caller": [0, 0]},
            [(1013, FSYNC, 7), (1024, FSYNC, 7)],
            0,
        ),
        # The mark had no space for the second one.
        ({"count": 9, "took_us": [3], "caller": [0]}, [(1013, FSYNC, 7)], 8),
        # No calls of fsync or fdatasync: synchronous writes.
        ({"count": 2, "took_us": [0, 0], "caller": [0, 0]}, [], 2),
    ],
)
def test_calls_that_the_recording_could_not_hold_are_counted(
    tmp_path: Path, noted: dict[str, Any], known: list[tuple[int, str, int]], unknown: int
) -> None:
    calls = {"after_us": [1010, 10], "callers": [{"process": 1, "inode": 7}], **noted}
    marks = [
        mark_of({"name": "work", "detail": {}}),
        mark_of({"name": "after", "detail": {"sync_calls": calls}}),
    ]
    recording = write(tmp_path / "recording", list(enumerate(marks, start=1)), size=1 << 20)
    found, count = heard(recording, ["work"])
    assert [(at_ns // 1000, kind, inode) for at_ns, kind, inode in found] == known
    assert count == unknown


def test_the_newest_promises_before_each_cut_are_read() -> None:
    promises = {1: [10, 20, 30], 2: [25]}
    assert instants(promises, [29, 41], margin_ns=5, most=1) == [20, 30]
    assert instants(promises, [30], margin_ns=5, most=2) == [20, 25]
    assert instants(promises, [12], margin_ns=5, most=2) == []
