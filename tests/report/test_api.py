"""`import fscost` in a script."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fscost
from fscost import api
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
    assert fscost.__version__[0].isdigit()


def test_a_notebook_shows_the_answer_of_a_run(hostile_run: Path) -> None:
    shown = fscost.load(hostile_run)._repr_html_()
    assert shown.startswith("<p>ext4 wrote the least: 1.00 MiB")
    assert "<th>profile</th>" in shown
    assert "<script" not in shown
    assert "<img" not in shown


def test_compare_measures_what_it_is_asked(tmp_path: Path) -> None:
    said: list[str] = []
    asked = fscost.Request(seed=7, name="asked", keep="none", setup=("true",))
    run = fscost.compare(
        *("ext4", "xfs"),
        command="test -d {here}",
        repetitions=2,
        out=tmp_path / "run",
        lab="fake:",
        options=asked,
        say=said.append,
    )
    manifest = run.results.manifest
    assert (manifest.name, manifest.seed, manifest.profile_names) == ("asked", 7, ["ext4", "xfs"])
    assert manifest.request["command"] == [f"test -d {Path.cwd()}"]
    assert {row["n"] for row in run.rows.to_pylist()} == {2}
    assert run.samples.equals(load(tmp_path / "run").samples)
    assert said == ["--setup true"]
    with pytest.raises(InputError, match="--workload requires"):
        fscost.compare("ext4", command="true", workload="small-files", lab="fake:")


NOTEBOOK = Path(__file__).parents[2] / "docs/notebook.ipynb"


@pytest.mark.root
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook's last expressions have values, which a notebook displays."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            *statements, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(statements, []), "cell", "exec"), names)
            assert isinstance(last, ast.Expr | ast.Assign)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
            else:
                exec(compile(ast.Module([last], []), "cell", "exec"), names)
    assert shown
    assert all(shown[:-1])
    assert {name for name, *_ in shown[1]} == {"ext4", "xfs"}


@pytest.mark.root
def test_functions_agree_with_the_run(real_run: Path) -> None:
    run = fscost.load(real_run)
    recording = run.recording("xfs")
    assert fscost.explain(recording).table.equals(run.explain("xfs").table)
    worn = api.wear(recording, "sd-card", by="cause")["main"]
    charged = sum(charge.nand_write_bytes for charge in worn.charges)
    assert charged == pytest.approx(worn.nand_write_bytes)
    assert run.wear("xfs", "sd-card")["main"].nand_write_bytes == worn.nand_write_bytes
    with pytest.raises(InputError, match="sd-cart"):
        api.wear(recording, "sd-cart")


def test_the_package_alone_loads_nothing_slow() -> None:
    code = "import sys, fscost; print(*({'pyarrow', 'altair', 'numpy'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
    with pytest.raises(AttributeError):
        _ = fscost.nothing
