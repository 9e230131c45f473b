"""Recordings that this machine made for this user are known again; others may be a stranger's."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.lab.fake import FakeLab
from fscost.results import RunResults, load
from fscost.run import RunOutcome, RunSpec, made_here

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
SHA256 = "6fd1c8b2ac9a9f7ae0bd0b1f5d4ba8a4b30c4dd3fa1a0f5e0d8a4f3e5a8f4c10"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the notes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fscost" / "recordings"


def noted(results: RunResults) -> list[str]:
    """Return the names of the profiles whose recordings are noted."""
    profiles = {profile["name"]: profile for profile in results.manifest.profiles}
    return [
        cell.profile
        for cell in results.manifest.done
        if made_here.is_noted(profiles[cell.profile], results.folder / cell.recording)
    ]


@pytest.mark.parametrize(("lab", "count"), [("native", 3), ("vm", 0)])
def test_recordings_of_the_native_lab_are_noted(
    spec: Make, go: Go, tmp_path: Path, lab: str, count: int
) -> None:
    """A workload in a guest can write any disk, also one that attacks the kernel."""
    found = load(go(spec(keep="one"), FakeLab(name=lab)).results.folder)
    # Read again, from a folder that has moved.
    found.folder.rename(tmp_path / "moved")
    assert len(set(noted(load(tmp_path / "moved")))) == count


def test_damaged_notes_are_none(spec: Make, go: Go, cache: Path) -> None:
    cache.mkdir(mode=0o700, parents=True)
    (cache / "made-here").write_bytes(b"\xff\xfe\n")
    found = go(spec(keep="one"), FakeLab(name="native")).results
    assert len(noted(found)) == 3


def test_what_was_changed_is_not_known(spec: Make, go: Go) -> None:
    found = go(spec(keep="one"), FakeLab(name="native")).results
    assert len(noted(found)) == 3
    [cell] = [each for each in found.manifest.done if each.recording][:1]
    for profile in found.manifest.profiles:
        if profile["name"] == cell.profile:
            profile["mount_options"] = "data=writeback"
    assert cell.profile not in noted(found)
    assert len(noted(found)) == 2
    for other in [each for each in found.manifest.done if each.recording]:
        with (found.folder / other.recording).open("ab") as file:
            file.write(b"more")
    assert noted(found) == []


def test_the_newest_notes_are_kept_in_a_private_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_here, "_MOST", 3)
    recordings = [tmp_path / str(number) for number in range(5)]
    for number, path in enumerate(recordings):
        path.write_bytes(bytes(number))
        made_here.note({}, hashlib.sha256(bytes(number)).hexdigest())
    assert [made_here.is_noted({}, path) for path in recordings] == [False] * 2 + [True] * 3
    assert cache.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in cache.iterdir()} == {".lock", "made-here"}


def test_notes_that_others_could_have_made_do_not_count(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(b"")
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    made_here.note({}, sha256)
    assert made_here.is_noted({}, path)
    cache.chmod(0o777)
    assert not made_here.is_noted({}, path)
    before = (cache / "made-here").read_bytes()
    made_here.note({}, SHA256)
    assert (cache / "made-here").read_bytes() == before


def test_a_note_follows_no_link(cache: Path, tmp_path: Path) -> None:
    made_here.note({}, SHA256)
    (cache / "made-here").unlink()
    (tmp_path / "victim").write_bytes(b"mine")
    (cache / "made-here").symlink_to(tmp_path / "victim")
    made_here.note({}, SHA256)
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_without_a_cache_there_is_no_note_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_bytes(b"not a folder")
    made_here.note({}, SHA256)
    assert not made_here.is_noted({}, tmp_path / "cache")


def test_a_look_makes_no_folder(cache: Path, tmp_path: Path) -> None:
    anything: Any = {"name": "ext4"}
    assert not made_here.is_noted(anything, tmp_path)
    assert not cache.parent.exists()
