"""Modules imported at startup. benches/explain.py measures the times."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from tests.cli.conftest import Fscost

from fscost import analyze
from fscost.cli import early, explain
from fscost.cli.app import COMMANDS, command
from fscost.profile import design
from fscost.request.model import Request
from fscost.request.request import STOPPING
from fscost.run import StoppingRule

ROOT = Path(__file__).parents[2]
EXT4 = ROOT / "crates/explain/tests/data/ext/ext4.fscost"
WORN = ROOT / "docs/atlas/runs/6.18-native/sqlite"

SLOW = ("numpy", "pyarrow", "scipy")


@pytest.mark.parametrize(
    "modules", ["fscost.cli.app", "fscost.cli.explain", "fscost.cli.recording"]
)
def test_no_slow_library_is_imported_before_it_is_used(modules: str) -> None:
    code = f"import sys, {modules}; print(*(set({SLOW!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_explain_imports_nothing_that_it_does_not_use() -> None:
    """While a recording is explained, imports take a processor from the threads that decompress
    it."""
    code = (
        "import sys, fscost.analyze, fscost.cli.output.explained, fscost.report.width;"
        "print(*({'scipy', 'rich', 'pyarrow.parquet'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def imported(*arguments: object) -> set[str]:
    """Return the modules that a command imports."""
    code = (
        "import sys; sys.argv = ['fscost', *sys.argv[1:]]\nfrom fscost.cli import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stderr.split())


def test_help_imports_neither_tables_nor_labs() -> None:
    """`compare --help` may take 0.2 s of processor time; pydantic alone takes 0.1 s."""
    found = imported("compare", "--help")
    unused = {"numpy", "pyarrow", "pydantic", "scipy", "altair", "rich", "jinja2"}
    assert found & unused == set()
    rooms = {name.split(".")[1] for name in found if name.startswith("fscost.")}
    assert rooms == {"cli", "errors", "request", "view"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_no_command_imports_tables(name: str) -> None:
    """pyarrow alone takes 0.2 s of processor time."""
    assert imported(name, "--help") & {"numpy", "pyarrow", "scipy", "altair", "jinja2"} == set()


def test_show_imports_neither_charts_nor_labs_nor_models() -> None:
    """`show` may take 0.35 s of processor time, most of which typer, pydantic and pyarrow need. The
    run was made with `--ssd`."""
    found = imported("show", WORN)
    unused = {"numpy.ma", "pyarrow.dataset", "scipy", "altair", "rich", "jinja2"}
    assert found & unused == set()
    rooms = {name.split(".")[1] for name in found if name.startswith("fscost.")}
    unused = {"analyze", "crash", "host", "lab", "latency", "profile", "run", "study", "wear"}
    assert rooms & unused == set()


LIGHT = """
import sys
sys.modules.update(dict.fromkeys(("altair", "jinja2", "squarify", "vl_convert", "scipy")))
from fscost.cli import main

def fscost(*arguments):
    sys.argv = ["fscost", *arguments]
    try:
        main()
    except SystemExit as ended:
        print(ended.code)

sweep = "ext4 -O {,^has_journal} -o {relatime,noatime}"
fscost("compare", "--lab", "fake", "-r", "3", "--on", sweep, "-o", "out", "--", "true")
import fscost as api
print(api.load("out").effects().num_rows)
fscost("report", "out")
"""


def test_a_light_install_measures_and_names_the_extra_for_charts(tmp_path: Path) -> None:
    """None in sys.modules is a package that is not installed."""
    command = [sys.executable, "-c", LIGHT]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "What matters for bytes written" in done.stdout
    assert done.stdout.endswith("\n0\n3\n2\n")
    assert "fscost: charts and pages need" in done.stderr
    assert "pip install 'fscost[report]'" in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_own_help_says(name: str) -> None:
    assert command(name).help.split("\n")[0] == COMMANDS[name]


def test_what_can_be_summed_by_is_what_the_option_offers() -> None:
    assert list(get_args(explain.By)) == [by.value for by in analyze.By]


def test_explain_says_what_it_explains_before_the_command_line_is_read() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('typer', 'pydantic', 'pyarrow')));"
        "from fscost.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "explain", EXT4]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == f"{EXT4}\n"
    assert "fscost: cannot start" in done.stderr


def test_an_early_beginning_changes_nothing_of_what_is_printed(fscost: Fscost) -> None:
    usual = fscost("explain", "--by", "structure", str(EXT4))
    assert early.begun(EXT4) is None
    assert fscost("explain", str(EXT4)).stdout == usual.stdout
    assert usual.stdout.count(str(EXT4)) == 1


def test_what_may_be_wrong_begins_nothing(
    tmp_path: Path, fscost: Fscost, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, link = tmp_path / "damaged", tmp_path / "link"
    damaged.write_bytes(EXT4.read_bytes()[:40])
    link.symlink_to(EXT4)
    for path in (damaged, link, tmp_path, tmp_path / "missing", tmp_path / ("x" * 300)):
        early.begin(["explain", str(path)])
        assert early.begun(path) is None
    early.begin(["explain", "--json", str(EXT4)])
    early.begin(["wear", str(EXT4)])
    assert early.begun(EXT4) is None
    assert capsys.readouterr().out == ""
    failed = fscost("explain", str(damaged), check=(2,))
    assert failed.stdout == ""
    assert str(damaged) in failed.stderr


def test_the_defaults_of_options_are_those_of_the_stopping_rule() -> None:
    assert {name: getattr(Request, name) for name in STOPPING} == {
        name: getattr(StoppingRule, name) for name in STOPPING
    }
    assert Request.design == design.FULL
