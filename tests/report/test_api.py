"""`import fscost` in a script."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fscost
from fscost.errors import InputError
from fscost.results import load


def test_a_run_is_an_object_with_tables_figures_and_a_page(
    made_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = made_run("ext4", "xfs")
    run = fscost.load(folder)
    assert run.samples.equals(load(folder).samples)
    rows = [row for row in run.rows.to_pylist() if row["metric"] == "wall_s"]
    assert {(row["profile"], row["phase"], row["n"]) for row in rows} == {
        (profile, phase, 3) for profile in ("ext4", "xfs") for phase in ("work", "total")
    }
    assert "wall_s" in run.figures
    run.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(InputError, match="no recording of 'xfs'"):
        run.explain("xfs")


def test_the_package_alone_loads_nothing_slow() -> None:
    code = "import sys, fscost; print(*({'pyarrow', 'altair', 'numpy'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
    with pytest.raises(AttributeError):
        _ = fscost.nothing
