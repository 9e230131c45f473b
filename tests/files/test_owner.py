"""Files that root creates under sudo are given to the caller, and no others are."""

import os
from pathlib import Path

import pytest

from fscost.files import creating, given_to_caller, replacing

pytestmark = pytest.mark.root
CALLER, GROUP, SOMEBODY = 12345, 12346, 12347


@pytest.fixture(autouse=True)
def _under_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    monkeypatch.setenv("SUDO_GID", str(GROUP))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    os.chown(found, CALLER, GROUP)
    return found


def owners(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(each.relative_to(folder)): (each.lstat().st_uid, each.lstat().st_gid)
        for each in sorted(folder.rglob("*"))
    }


def test_a_run_and_the_folders_made_for_it_are_the_callers(home: Path) -> None:
    run = home / "runs" / "one"
    with given_to_caller(run):
        (run / "cells").mkdir()
        (run / "cells" / "output.log").write_text("x")
        # Until the end no other user can change the files there.
        assert {uid for uid, _ in owners(home).values()} == {0}
    assert owners(home) == dict.fromkeys(
        ["runs", "runs/one", "runs/one/cells", "runs/one/cells/output.log"], (CALLER, GROUP)
    )


def test_links_second_names_and_what_was_roots_before_stay(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    run = home / "run"
    run.mkdir()
    (run / "cells").mkdir()
    (run / "cells" / "mine").write_text("x")
    (run / "link").symlink_to(secret)
    os.link(secret, run / "hard")
    (run / "moved").write_text("root's, brought here")
    for each in (run, run / "cells", run / "cells" / "mine", run / "link"):
        os.chown(each, CALLER, GROUP, follow_symlinks=False)
    with given_to_caller(run):
        assert (run.stat().st_uid, (run / "cells").stat().st_uid) == (0, 0)
        (run / "new").write_text("x")
        (run / "cells" / "planted").symlink_to(secret)
        os.link(secret, run / "cells" / "second")
    assert secret.stat().st_uid == 0
    assert owners(run) == {
        "cells": (CALLER, GROUP),
        "cells/mine": (CALLER, GROUP),
        "cells/planted": (0, 0),
        "cells/second": (0, 0),
        "hard": (0, 0),
        "link": (CALLER, GROUP),
        "moved": (0, 0),
        "new": (CALLER, GROUP),
    }
    assert run.stat().st_uid == CALLER


def test_a_folder_that_was_swapped_is_not_followed(home: Path, tmp_path: Path) -> None:
    run, evil = home / "run", tmp_path / "evil"
    evil.mkdir()
    (evil / "file").write_text("root's")
    with given_to_caller(run):
        run.rename(home / "away")
        evil.rename(run)
    assert owners(run) == {"file": (0, 0)}
    assert run.stat().st_uid == 0


def test_the_folder_of_another_user_is_left_alone(home: Path) -> None:
    run = home / "run"
    run.mkdir()
    os.chown(run, SOMEBODY, SOMEBODY)
    with given_to_caller(run):
        (run / "new").write_text("x")
    assert owners(home) == {"run": (SOMEBODY, SOMEBODY), "run/new": (0, 0)}


def test_a_run_that_made_nothing_leaves_no_folder(home: Path) -> None:
    with pytest.raises(ValueError, match="refused"), given_to_caller(home / "runs" / "one"):
        raise ValueError("refused")
    assert owners(home) == {}


@pytest.mark.parametrize("make", [replacing, creating])
def test_a_file_is_the_callers_in_the_callers_folder_only(
    home: Path, tmp_path: Path, make: object
) -> None:
    for folder in (home, tmp_path):
        with make(folder / "x.csv") as file:  # type: ignore[operator]
            file.write(b"new")
    assert (home / "x.csv").stat().st_uid == CALLER
    assert (tmp_path / "x.csv").stat().st_uid == 0


def test_without_sudo_all_stays_roots(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID")
    with given_to_caller(home / "run"):
        (home / "run").mkdir()
    with replacing(home / "x.csv") as file:
        file.write(b"new")
    assert owners(home) == {"run": (0, 0), "x.csv": (0, 0)}
