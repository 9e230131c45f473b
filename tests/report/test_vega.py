"""The cached script of pages: browsers run it, so nobody else may have written it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fscost.files import cache
from fscost.report.html import vega

OURS, PLANTED = "ours();", "planted();"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a script that is built at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(vega, "_built", lambda: OURS)
    return tmp_path / "cache"


def kept(home: Path) -> Path:
    (found,) = home.glob("fscost/vega/*/vega.js")
    return found


def never() -> str:
    raise AssertionError("built although it is in the cache")


def test_the_script_is_built_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vega._script() == OURS
    assert kept(home).read_text() == OURS
    monkeypatch.setattr(vega, "_built", never)
    assert vega._script() == OURS


def test_another_version_has_another_script(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(vega._KEPT + 3):
        monkeypatch.setattr(vega, "version", lambda _, number=number: f"{number}")
        monkeypatch.setattr(vega, "_built", lambda number=number: f"script {number}")
        assert vega._script() == f"script {number}"
    assert len(list(home.glob("fscost/vega/*/vega.js"))) == vega._KEPT + 1


def open_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def given_away(folder: Path) -> None:
    os.chown(folder, 65534, 65534)


@pytest.mark.parametrize("change", [open_to_all, pytest.param(given_away, marks=pytest.mark.root)])
@pytest.mark.parametrize("above", range(4))
def test_a_planted_script_is_not_used(
    home: Path, above: int, change: Callable[[Path], None]
) -> None:
    vega._script()
    script = kept(home)
    script.write_text(PLANTED)
    cache._seal(script.parent)
    assert vega._script() == PLANTED  # as long as the folders are ours
    change(script.parents[above])
    assert vega._script() == OURS
    assert script.read_text() == PLANTED  # nothing is written into another's folder


def test_a_damaged_script_is_made_again(home: Path) -> None:
    vega._script()
    kept(home).write_text(OURS[:-1])
    assert vega._script() == OURS
    assert kept(home).read_text() == OURS
    kept(home).unlink()
    assert vega._script() == OURS


def test_without_a_cache_the_script_is_built(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_text("a file where the folder would be")
    assert vega._script() == OURS

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert vega._script() == OURS
