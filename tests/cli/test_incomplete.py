"""Recordings that are cut or damaged: each view says that it shows only a part."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kept_runs import NAMES, run_of

from fscost.results import load
from fscost.view.kept import kept

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
EXT4 = ROOT / "crates/explain/tests/data/ext/ext4.fscost"
CUT = "the recording is incomplete (truncated at byte"
DAMAGED = "the recording is incomplete (damaged at byte"
VIEWS = {
    "groups": ("explain",),
    "at": ("explain", "--at", "0"),
    "fsyncs": ("explain", "--fsyncs"),
    "wear": ("wear", "--ssd", "sd-card-32gb"),
}


def whole(path: Path) -> None:
    shutil.copy(EXT4, path)


def cut(path: Path) -> None:
    path.write_bytes(EXT4.read_bytes()[:-70])


def damaged(path: Path) -> None:
    """Overwrite the beginning of the last frame, the end."""
    content = bytearray(EXT4.read_bytes())
    at = content.rindex(content[128:132])
    content[at : at + 4] = b"\xff" * 4
    path.write_bytes(content)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_of_a_cut_recording_says_so(fscost: Run, tmp_path: Path, view: str) -> None:
    command, *more = VIEWS[view]
    for make, is_cut in ((whole, False), (cut, True)):
        make(tmp_path / "r.fscost")
        told = words(fscost(command, "r.fscost", *more).stdout)
        assert (CUT.split(" ", 1)[1] in told) == is_cut
        found = json.loads(fscost(command, "r.fscost", *more, "--json").stdout)
        [end] = [each["end"] for each in found.get("entries", [found])]
        assert end.startswith("truncated") if is_cut else end == "finished"


@pytest.mark.parametrize("view", VIEWS)
def test_a_damaged_recording_is_shown_and_an_error(fscost: Run, tmp_path: Path, view: str) -> None:
    command, *more = VIEWS[view]
    damaged(tmp_path / "r.fscost")
    for form in ((), ("--json",)):
        ended = fscost(command, "r.fscost", *more, *form, check=(2,))
        assert "damaged at byte" in words(ended.stdout)
        assert "r.fscost: damaged at byte" in ended.stderr
        assert "fscost recording verify" in ended.stderr


def test_a_difference_names_the_side_that_is_cut(fscost: Run, tmp_path: Path) -> None:
    run_of(tmp_path / "run", "a", "b")
    diff = ("explain", "run", "--diff", *NAMES[:2])
    whole(tmp_path / "run" / "a")
    cut(tmp_path / "run" / "b")
    told = words(fscost(*diff).stdout)
    assert f"ext4 -o commit=30: {CUT}" in told
    assert told.count("incomplete") == 1
    found = json.loads(fscost(*diff, "--json").stdout)
    assert found["first_end"] == "finished"
    assert found["second_end"].startswith("truncated at byte")
    damaged(tmp_path / "run" / "a")
    ended = fscost(*diff, check=(2,))
    assert f"ext4: {DAMAGED}" in words(ended.stdout)
    assert "run/a: damaged at byte" in ended.stderr
    assert "truncated" not in ended.stderr


def test_a_page_says_it_too(tmp_path: Path) -> None:
    run_of(tmp_path / "run", "a", "b")
    whole(tmp_path / "run" / "a")
    cut(tmp_path / "run" / "b")
    first, second = kept(load(tmp_path / "run")).explained
    assert not any("incomplete" in each for each in first.findings)
    assert second.findings[0].startswith(CUT)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_a_device_cannot_be_shown_for_is_said(
    fscost: Run, tmp_path: Path, more: tuple[str, ...]
) -> None:
    show = ("show", "run", "--ssd", "sd-card-32gb", *more)
    run_of(tmp_path / "run", "a", "b", "")
    assert "--ssd needs recordings, and run kept none" in fscost(*show, check=(2,)).stderr
    cut(tmp_path / "run" / "a")
    ended = fscost(*show)
    assert "nand_write_bytes" in ended.stdout if more else "NAND" in ended.stdout
    told = "run: not replayed: ext4 -o commit=30, xfs, because no recording is kept"
    assert told in ended.stderr.splitlines()
    assert f"run: ext4: {CUT}" in ended.stderr
    whole(tmp_path / "run" / "a")
    whole(tmp_path / "run" / "b")
    run_of(tmp_path / "other", "a")
    whole(tmp_path / "other" / "a")
    differ = ("diff", "run", "other", "--ssd", "sd-card-32gb", *more)
    assert fscost(*differ).stderr == "run: not replayed: xfs, because no recording is kept\n"
