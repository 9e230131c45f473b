"""The steps of an examination, on disks that are not mounted."""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fscost.crash import examination
from fscost.crash.examination import Examiner, unusable

ABOUT = {
    "workload": "files",
    "type": "ext4",
    "options": "",
    "disks": [{"name": "main", "size_bytes": 1 << 20, "sector_bytes": 512}],
}
JOB = {"at_ns": 5, "kept": [], "without": [], "kept_promises": {}}


class Nowhere:
    """Disks that are never opened."""

    @contextmanager
    def disk(self, number: int, job: Mapping[str, Any]) -> Iterator[Path]:
        yield Path("/nowhere")

    @contextmanager
    def blank(self, name: str, number: int) -> Iterator[Path]:
        yield Path("/nowhere")


def refused(number: int, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, method, refuse)


def test_a_use_leaves_nothing(tmp_path: Path) -> None:
    assert unusable(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "method", "why"),
    [
        (errno.EROFS, "mkdir", "Read-only file system"),
        (errno.EIO, "write_bytes", "Input/output error"),
        (errno.EUCLEAN, "rmdir", "Structure needs cleaning"),
        # A full file system is no fault of the recovery.
        (errno.ENOSPC, "mkdir", ""),
        (errno.ENOSPC, "write_bytes", ""),
        (errno.EDQUOT, "write_bytes", ""),
    ],
)
def test_a_use_that_fails_says_why(
    number: int, method: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(number, method, monkeypatch)
    assert unusable(tmp_path) == why


def test_a_file_system_that_cannot_be_used_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []
    examiner = Examiner(ABOUT, Nowhere(), tmp_path)
    monkeypatch.setattr(examiner, "_broken", lambda root, kept: [])
    monkeypatch.setattr(examiner, "_run", lambda words: run.append(words[0]) or 0)
    monkeypatch.setattr(examination.mounting, "mount", lambda *words: "")
    monkeypatch.setattr(examination.mounting, "unmount", lambda folder: "")
    usable = {"mounts": True, "is_clean": True, "broken": [], "files": None}
    assert examiner.answer(JOB) == {**usable, "needs_repair": False, "words": []}
    assert run == ["e2fsck"]
    refused(errno.EROFS, "mkdir", monkeypatch)
    found = examiner.answer(JOB)
    assert (found["is_clean"], found["needs_repair"]) == (False, True)
    assert found["words"][0] == "use after recovery: Read-only file system"
