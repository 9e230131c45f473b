"""A run folder that another user owns or can write to: the review's H1, and the choices left to a
user who trusts the folder."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.results import load
from fscost.run.folder import discard

Run = Callable[..., Any]
SOMEBODY = 65534
THREE = ("--min-repetitions", "3", "--max-repetitions", "3")
READERS = [
    ("show", "here"),
    ("explain", "here"),
    ("study", "show", "here"),
    ("compare", "--lab", "fake", "--resume", "here"),
]


@pytest.fixture
def run(compare: Run, tmp_path: Path) -> Path:
    """Return a finished run of the command `true`, which includes a cell that a SIGKILL left
    behind."""
    compare("--on", "ext4", *THREE, "--out", "here")
    (tmp_path / "here" / "cells" / "ext4.7").mkdir()
    return tmp_path / "here"


@pytest.mark.root
@pytest.mark.parametrize("inside", [".", "cells"])
@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_a_folder_of_another_user_is_refused(
    run: Path, fscost: Run, words: tuple[str, ...], inside: str
) -> None:
    os.chown(run / inside, SOMEBODY, SOMEBODY)
    ended = fscost(*words, check=(2,))
    assert "belongs to user nobody" in ended.stderr
    assert "--trust" in ended.stderr
    assert (run / "cells" / "ext4.7").exists()


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_a_folder_that_others_can_write_to_is_refused(
    run: Path, fscost: Run, words: tuple[str, ...], mode: int
) -> None:
    run.chmod(mode)
    assert f"others can write to here (mode {mode:04o})" in fscost(*words, check=(2,)).stderr


@pytest.mark.root
@pytest.mark.parametrize("theirs", ["owner", "mode"])
@pytest.mark.parametrize("does_resume", [False, True], ids=["new", "resume"])
def test_a_run_below_a_folder_that_others_control_is_refused(
    compare: Run, fscost: Run, tmp_path: Path, theirs: str, does_resume: bool
) -> None:
    """N3: the owner of the folder above a run exchanged the run's folder for the victim's."""
    outer = tmp_path / "outer"
    outer.mkdir()
    if does_resume:
        compare("--on", "ext4", *THREE, "--out", "outer/run")
    words = (
        ("compare", "--lab", "fake", "--resume", "outer/run")
        if does_resume
        else ("compare", "--lab", "fake", "--on", "ext4", "--out", "outer/run", "--", "true")
    )
    if theirs == "owner":
        os.chown(outer, SOMEBODY, SOMEBODY)
    else:
        outer.chmod(0o757)
    refused = fscost(*words, check=(2,)).stderr
    assert "outer/run is not safe" in refused
    assert "--trust" in refused
    assert (outer / "run").exists() == does_resume
    outer.chmod(0o1757)
    fscost(*words[:3], "--trust", *words[3:])


@pytest.mark.root
@pytest.mark.parametrize("theirs", ["file", "folder"])
def test_a_suite_of_another_user_is_refused(fscost: Run, tmp_path: Path, theirs: str) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    suite = folder / "fscost.toml"
    suite.write_text('version = 1\nprofiles = ["ext4"]\n[workloads.a]\ncommand = "true"\n')
    fscost("run", "theirs/fscost.toml", "--lab", "fake", "--dry-run")
    os.chown(suite if theirs == "file" else folder, SOMEBODY, SOMEBODY)
    refused = fscost("run", "theirs/fscost.toml", "--lab", "fake", "--dry-run", check=(2,)).stderr
    assert "theirs/fscost.toml is not safe to run" in refused
    fscost("run", "theirs/fscost.toml", "--lab", "fake", "--dry-run", "--trust")


def test_trust_is_the_way_on(run: Path, fscost: Run, tmp_path: Path) -> None:
    run.chmod(0o777)
    fscost("show", "here", "--trust")
    fscost(
        "compare",
        "--lab",
        "fake",
        "--resume",
        "here",
        "--trust",
        "--min-repetitions",
        "4",
        "--max-repetitions",
        "4",
    )
    assert len(load(run, trust=True).manifest.cells) == 4
    assert not (run / "cells" / "ext4.7").exists()


def test_what_will_run_is_said_before_it_runs(compare: Run, fscost: Run, tmp_path: Path) -> None:
    compare(
        "--on",
        "ext4",
        "--prepare",
        "touch a",
        *THREE,
        "--out",
        "here",
        command=("sh", "-c", "true \x1b[2K && id > pwned"),
    )
    told = fscost("compare", "--lab", "fake", "--resume", "here").stderr
    line = (
        "resuming here: fscost compare --on ext4 --prepare 'touch a' --max-repetitions 3 -- sh -c"
        " 'true �[2K && id > pwned'"
    )
    assert told.splitlines()[0] == line
    dry = fscost("compare", "--lab", "fake", "--resume", "here", "--dry-run").stdout
    assert "�[2K" in dry
    assert "\x1b" not in dry + told


@pytest.mark.parametrize("name", ["cells", "inputs", "activity", "minimised", "crash"])
@pytest.mark.parametrize("trust", [(), ("--trust",)], ids=["", "trusted"])
def test_nothing_is_removed_through_a_link(
    run: Path, fscost: Run, tmp_path: Path, name: str, trust: tuple[str, ...]
) -> None:
    victim = tmp_path / "victim"
    for folder in ("documents", "photos", "ext4.9", "tree-0123456789ab"):
        (victim / folder).mkdir(parents=True)
    if (run / name).exists():
        (run / name).rename(run / "moved")
    (run / name).symlink_to(victim)
    assert (
        f"here/{name} is a symbolic link"
        in fscost("compare", "--lab", "fake", "--resume", "here", *trust, check=(2,)).stderr
    )
    assert len(list(victim.iterdir())) == 4


def test_only_folders_that_fscost_names_are_removed(run: Path, fscost: Run, tmp_path: Path) -> None:
    for name in ("documents", "ext4.9", "ext4.x", ".git"):
        (run / "cells" / name).mkdir(exist_ok=True)
    (run / "inputs" / "photos").mkdir(parents=True)
    (run / "inputs" / "small-tree-0123456789ab").mkdir()
    (run / "cells" / "ext4.8").symlink_to(tmp_path)
    fscost("compare", "--lab", "fake", "--resume", "here")
    assert {path.name for path in (run / "cells").iterdir()} == {
        "ext4.0",
        "ext4.1",
        "ext4.2",
        "documents",
        "ext4.x",
        ".git",
        "ext4.8",
    }
    assert [path.name for path in (run / "inputs").iterdir()] == ["photos"]
    assert tmp_path.is_dir()


@pytest.mark.parametrize("existed", [False, True])
def test_a_run_that_finished_nothing_removes_what_it_made_and_nothing_else(
    run: Path, existed: bool
) -> None:
    (run / "mine").write_text("somebody's")
    discard(run, existed)
    assert [path.name for path in run.iterdir()] == ["mine"]
    (run / "mine").unlink()
    discard(run, existed)
    assert run.exists() == existed


def test_a_folder_to_fill_must_not_be_open_to_others(compare: Run, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here").chmod(0o777)
    assert "others can write" in compare("--on", "ext4", "--out", "here", check=(2,)).stderr


def test_a_run_is_closed_to_others_whatever_the_umask(
    compare: Run, fscost: Run, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        compare("--on", "ext4", "--out", "deep/here")
    finally:
        os.umask(before)
    folders = [path for path in (tmp_path / "deep").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o022 for path in folders} == {0}
    fscost("show", "deep/here")


def test_samples_of_another_run_are_not_shown_as_this_ones(
    compare: Run, fscost: Run, tmp_path: Path
) -> None:
    compare("--on", "ext4", *THREE, "--out", "here")
    compare("--on", "ext4", *THREE, "--seed", "9", "--out", "other")
    (tmp_path / "here" / "samples.parquet").write_bytes(
        (tmp_path / "other" / "samples.parquet").read_bytes()
    )
    assert "the samples of cell 'ext4.0' do not match" in fscost("show", "here", check=(2,)).stderr
    manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
    assert all(set(cell["files_sha256"]) >= {cell["output"]} for cell in manifest["cells"])
