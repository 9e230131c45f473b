"""Suite files, and the schemas of fscost's inputs and outputs."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError
from tests.schemas import valid, validator

from fscost.cli.output import schemas
from fscost.report import document
from fscost.request.model import Request
from fscost.results import load

Run = Callable[..., Any]
SUITE = """
version = 1
name = "nightly"
profiles = ["ext4", "ext4 -o commit={5,30}"]
seed = 7

[stop]
min_repetitions = 2
max_repetitions = 2

[workloads.copy]
command = "cp {here}/data ."
prepare = ["mkdir x"]
env = { A = "b c" }
per = "10:file"

[workloads.database]
builtin = "sqlite"
scale = 0.1
set = { journal = "wal" }
profiles = ["xfs"]
stop = { max_repetitions = 3, precision = 0.5 }
"""


def test_each_workload_is_a_run_with_its_own_options(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "fscost.toml").write_text(SUITE)
    said = fscost("run", "--lab", "fake", "-o", "out")
    copy, database = (load(tmp_path / "out" / name).manifest for name in ("copy", "database"))
    assert copy.name == "nightly: copy"
    assert copy.profile_names == ["ext4", "ext4 -o commit=5", "ext4 -o commit=30"]
    assert (copy.seed, database.seed) == (7, 7)
    prepare, step = copy.workload["steps"]
    assert prepare["shell"] == "mkdir x"
    assert step["shell"] == f"cp {tmp_path}/data ."
    assert step["env"] == [["A", "b c"]]
    assert copy.request["per"] == "10:file"
    assert database.profile_names == ["xfs"]
    assert ["journal", "wal"] in database.workload["options"]
    assert database.stopping["min_repetitions"] == 2
    assert database.stopping["max_repetitions"] == 3
    assert database.stopping["precision"] == 0.5
    assert "changes are relative to the baseline of the same workload" in said.stdout


def test_a_suite_prints_of_each_workload_what_compare_would(fscost: Run, tmp_path: Path) -> None:
    """Each workload had one line: no reasons, and no caution."""
    text = 'version = 1\nprofiles = ["ext4", "xfs"]\n[workloads.a]\ncommand = "x"\n'
    (tmp_path / "fscost.toml").write_text(f'{text}[workloads.b]\ncommand = "x"\n')
    said = fscost("run", "--lab", "fake", "-r", "2", "-o", "out").stdout
    assert (said.count("\nWhy\n"), said.count("\nCaution\n")) == (2, 2)
    assert fscost("show", "out/b").stdout.partition("\nResults:")[0] in said
    brief = fscost("run", "--lab", "fake", "-r", "2", "-o", "brief", "--brief").stdout
    assert "Why" not in brief
    for shown in (said, brief):
        assert "changes are relative to the baseline of the same workload" in shown
    told = fscost("run", "--brief", "--json", check=(2,)).stderr
    assert "drop --brief, or drop --json" in told


def test_an_exact_number_of_repetitions_sets_both_bounds(fscost: Run, tmp_path: Path) -> None:
    changed = SUITE.replace("stop = { max_repetitions = 3,", "stop = { repetitions = 4,")
    (tmp_path / "fscost.toml").write_text(changed)
    fscost("run", "--lab", "fake", "--only", "database", "-o", "out")
    stopping = load(tmp_path / "out").manifest.stopping
    assert (stopping["min_repetitions"], stopping["max_repetitions"]) == (4, 4)


def test_a_kernel_overrides_that_of_each_workload(fscost: Run, tmp_path: Path) -> None:
    """Modules belong to kernels, and --kernel replaces both."""
    of_its_own = 'kernel = ["./vmlinuz"]\nmodules = ["m"]\n'
    (tmp_path / "fscost.toml").write_text(SUITE.replace("scale = 0.1\n", of_its_own))
    words = ("run", "--lab", "fake", "-r", "1", "--kernel", "6.1")
    fscost(*words, "--kernel", "6.12", "-o", "out")
    copy, database = (load(tmp_path / "out" / name).manifest for name in ("copy", "database"))
    assert copy.profile_names == [
        f"{name} @{kernel}"
        for name in ("ext4", "ext4 -o commit=5", "ext4 -o commit=30")
        for kernel in ("6.1", "6.12")
    ]
    assert database.profile_names == ["xfs @6.1", "xfs @6.12"]
    assert database.request["modules"] == []
    said = fscost(*words, "--kernel", "6.12", "--resume", "out").stderr
    assert ("copy: finished already" in said, "database: finished already" in said) == (True, True)
    assert (
        "its baseline was 'ext4 @6.1' and is 'ext4'"
        in fscost(*words, "--resume", "out", check=(2,)).stderr
    )
    fscost(*words[:-2], "--kernel", "./image", "--modules", "there", "-o", "image")
    request = load(tmp_path / "image" / "copy").manifest.request
    assert request["kernel"] == [str(tmp_path / "image")]
    assert request["modules"] == [str(tmp_path / "there")]


@pytest.mark.parametrize("lab", ["--lab native", 'lab = "native"'])
def test_a_kernel_is_not_for_the_native_lab(fscost: Run, tmp_path: Path, lab: str) -> None:
    words = lab.split() if lab.startswith("-") else []
    (tmp_path / "fscost.toml").write_text(SUITE if words else SUITE.replace("seed = 7", lab))
    said = fscost("run", *words, "--kernel", "6.1", "-o", "out", check=(2,)).stderr
    assert "--kernel 6.1 is for guests, and --lab native is this machine's own kernel" in said
    assert not (tmp_path / "out").exists()


def test_lists_make_a_run_for_each_combination(fscost: Run, tmp_path: Path) -> None:
    lists = 'set = { journal = "{mode}" }\nlists = { mode = ["wal", "delete"], size = [1, 2] }'
    sized = lists + '\nfill = "{size}0%"'
    (tmp_path / "fscost.toml").write_text(SUITE.replace('set = { journal = "wal" }', sized))
    said = fscost("run", "--lab", "fake", "--only", "database", "-r", "1", "-o", "out")
    made = {path.parent.name for path in (tmp_path / "out").glob("*/manifest.json")}
    assert made == {
        f"database-mode-{mode}-size-{size}" for mode in ("wal", "delete") for size in (1, 2)
    }
    one = load(tmp_path / "out" / "database-mode-delete-size-2").manifest
    assert one.name == "nightly: database: mode=delete, size=2"
    assert ["journal", "delete"] in one.workload["options"]
    assert one.request["fill"] == "20%"
    assert "database, mode=delete, size=2" in " ".join(said.stdout.split())
    unused = SUITE.replace("scale = 0.1", "lists = { mode = [1] }")
    (tmp_path / "fscost.toml").write_text(unused)
    said = fscost("run", check=(2,)).stderr
    assert "workloads.database: -L mode: no option contains {mode}" in said


def test_paths_in_lists_start_from_the_suite_s_folder(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/fscost.toml").write_text(
        "version = 1\nprofiles = ['ext4']\nstop = {repetitions = 1}\n"
        "[workloads.copy]\ncommand = 'cp -r {tree} .'\nwritable = ['{own}']\n"
        "lists = {tree = ['{here}/a'], own = ['/srv', 'sub']}\n"
    )
    (tmp_path / "suite/sub").mkdir()
    fscost("run", "suite/fscost.toml", "--lab", "fake", "-o", "out")
    made = [load(each.parent) for each in sorted((tmp_path / "out").glob("*/manifest.json"))]
    found = {run.manifest.workload["steps"][0]["shell"] for run in made}
    assert found == {f"cp -r {tmp_path}/suite/a ."}
    writable = {each for run in made for each in run.manifest.request["writable"]}
    assert writable == {"/srv", f"{tmp_path}/suite/sub"}


def test_one_workload_shows_its_own_table(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "fscost.toml").write_text(SUITE)
    said = fscost("run", "--lab", "fake", "--only", "copy", "-r", "1", "-o", "out", "--json")
    assert valid(said.stdout)["run"]["name"] == "nightly: copy"
    assert len(load(tmp_path / "out").manifest.cells) == 3


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("", "fscost.toml: version is missing", "write version = 1"),
        ("version = 1", "fscost.toml: workloads is missing", "add workloads"),
        (
            "version = 1\nstop = {repetitions = 2, max_repetitions = 3}\n[workloads.a]\ncommand='x'",
            "repetitions sets both min_repetitions and max_repetitions",
            "fscost schema suite",
        ),
        (
            "version = 2\n[workloads.a]\ncommand='x'",
            "fscost.toml: version is 2, not 1",
            "version = 1",
        ),
        ("= 1", "fscost.toml: Invalid", "docs/suites.md"),
        (
            "version = 1\n[workloads.a]\n",
            "workloads.a sets no command",
            "give one of command, steps, builtin",
        ),
        (
            "version = 1\n[workloads.a]\ncommand='x'\nsteps = {b = 'y'}",
            "workloads.a sets command and steps",
            "give one of command, steps, builtin",
        ),
        (
            "version = 1\n[workloads.a]\ncomand = 'x'",
            "fscost.toml: workloads.a.comand: no such field",
            "did you mean command?",
        ),
        (
            "version = 1\non = ['ext4']\n[workloads.a]\ncommand = 'x'",
            "fscost.toml: on: no such field",
            "write profiles in place of on",
        ),
        (
            "version = 1\n[workloads.a]\nworkload = 'sqlite'",
            "fscost.toml: workloads.a.workload: no such field",
            "write builtin in place of workload",
        ),
        (
            "version = 1\n[workloads.a]\ncommand = 'x'\nmax_minutes = 3",
            "fscost.toml: workloads.a.max_minutes: no such field",
            "write it in the table stop: stop = { max_minutes = … }",
        ),
        (
            "version = 1\nstop = { max_repetition = 1 }\n[workloads.a]\ncommand = 'x'",
            "fscost.toml: stop.max_repetition: no such field",
            "did you mean max_repetitions",
        ),
        (
            "version = 1\n[workloads.a]\ncommand = 'x'\nseed = '1'",
            "fscost.toml: workloads.a.seed is a string, not a whole number",
            "`fscost schema suite` has every field",
        ),
        (
            "version = 1\nprofiles = [3]\n[workloads.a]\ncommand = 'x'",
            "fscost.toml: profiles[0] is a number, not a string",
            "`fscost schema suite` has every field",
        ),
        (
            "version = 1\nstop = { precision = 1 }\n[workloads.a]\ncommand = 'x'",
            "fscost.toml: stop.precision is not less than 1",
            "`fscost schema suite` has every field",
        ),
        (
            "version = 1\n[workloads.a]\ncommand = 'x'\n[workloads.b]\nbuiltin = 'sqlit'",
            "fscost.toml: workloads.b: no workload is called 'sqlit'",
            "did you mean sqlite",
        ),
        (
            "version = 1\n[workloads.'a b']\ncommand = 'x'\n[workloads.a-b]\ncommand = 'x'",
            "fscost.toml: workloads 'a b' and 'a-b' would share the folder a-b",
            "rename one",
        ),
        (
            "version = 1\nprofiles = ['ext5']\n[workloads.a]\ncommand = 'x'",
            "fscost.toml: workloads.a: ",
            "ext4",
        ),
    ],
)
def test_a_bad_suite_is_one_clear_error(
    fscost: Run, tmp_path: Path, text: str, cause: str, remedy: str
) -> None:
    (tmp_path / "fscost.toml").write_text(text)
    said = fscost("run", "--lab", "fake", check=(2,)).stderr
    first, second = said.strip().splitlines()
    assert cause in first
    assert remedy in second
    assert not (tmp_path / "fscost-runs").exists()


def test_what_is_no_suite_is_refused(fscost: Run, tmp_path: Path) -> None:
    assert "No such file" in fscost("run", check=(2,)).stderr
    assert "is a folder" in fscost("run", ".", check=(2,)).stderr
    (tmp_path / "fscost.toml").write_text(SUITE)
    said = fscost("run", "--only", "databse", check=(2,)).stderr
    assert "did you mean database?" in said


def test_every_option_of_a_comparison_is_a_field() -> None:
    """Every option of a comparison is a field, except those that must be given by hand each
    time."""
    model = schemas.MODELS["suite"].model_fields
    entry = json.loads(document.schema("suite"))["$defs"]["WorkloadEntry"]["properties"]
    known = {*entry, *json.loads(document.schema("suite"))["$defs"]["Stop"]["properties"]}
    named = {"on": "profiles", "workload": "builtin", "step": "steps"}
    assert "fail_if" in entry
    missing = {named.get(each, each) for each in Request.__dataclass_fields__} - known
    assert missing == {"device", "name"}
    assert {"version", "workloads"} < set(model)


@pytest.mark.parametrize("kind", document.VERSIONS)
def test_schemas_are_those_of_the_models(kind: str, fscost: Run) -> None:
    """The schemas match the models. After an intended change, run python -m
    fscost.cli.output.schemas."""
    assert fscost("schema", kind).stdout == schemas.text(kind)
    assert f"{kind} " in fscost("schema").stdout


def test_conditions_are_checked_against_an_earlier_suite(fscost: Run, tmp_path: Path) -> None:
    """The suite's conditions hold for a workload without its own."""
    write = (tmp_path / "fscost.toml").write_text
    suite = """
version = 1
profiles = ["ext4"]
stop = { repetitions = 3 }
fail_if = ["device_write_bytes > +5%"]
[workloads.copy]
command = "true"
per = "1:call"
[workloads.move]
command = "true"
fail_if = []
"""
    write(suite)
    assert "fail_if is checked with --against" in fscost("run", "--lab", "fake", "-o", "a").stderr
    again = ("run", "--lab", "fake", "--against", "a", "-o")
    fscost(*again, "b")
    # The fake lab writes more in later steps.
    write(suite.replace('command = "true"', 'command = "true"\nprepare = ["true"]'))
    said = fscost(*again, "c", check=(1,)).stderr
    assert "fscost: copy: device_write_bytes > +5% is true of ext4: " in said
    assert "fscost: move:" not in said
    write(suite.replace("+5%", "much"))
    assert (
        "'device_write_bytes > much' is not a condition" in fscost(*again, "d", check=(2,)).stderr
    )
    assert not (tmp_path / "d").exists()
    write(suite.replace('fail_if = ["device_write_bytes > +5%"]', ""))
    said = fscost(*again, "e", check=(2,)).stderr
    assert "--against has nothing to check: no chosen workload has fail_if" in said


def test_an_earlier_run_of_another_workload_is_refused(fscost: Run, tmp_path: Path) -> None:
    """A suite of which one workload was chosen makes one run, without a folder for its name."""
    (tmp_path / "fscost.toml").write_text("""
version = 1
profiles = ["ext4"]
stop = { repetitions = 2 }
fail_if = ["device_write_bytes > +5%"]
[workloads.mail]
builtin = "maildir"
[workloads.database]
builtin = "sqlite"
""")
    run = ("run", "--lab", "fake", "-o")
    fscost(*run, "mail", "--only", "mail")
    fscost(*run, "again", "--only", "mail", "--against", "mail")
    said = fscost(*run, "new", "--only", "database", "--against", "mail", check=(2,)).stderr
    assert "workloads.database: mail is a run of another workload (mail)" in said
    assert not (tmp_path / "new").exists()
    # The same workload may do something else, as the answer says.
    changed = (tmp_path / "fscost.toml").read_text().replace('"maildir"', '"small-files"')
    (tmp_path / "fscost.toml").write_text(changed)
    fscost(*run, "changed", "--only", "mail", "--against", "mail", check=(0, 1))


def test_the_schema_of_suites_tells_good_from_bad() -> None:
    validator("suite").validate(tomllib.loads(SUITE))
    for text in (
        SUITE.replace("scale = 0.1", "scale = 'large'"),
        SUITE.replace("version = 1", "version = 2"),
        SUITE.replace("per =", "pre ="),
    ):
        assert text != SUITE
        with pytest.raises(ValidationError):
            validator("suite").validate(tomllib.loads(text))


def test_an_unknown_schema_is_refused(fscost: Run) -> None:
    assert "did you mean suite?" in fscost("schema", "siute", check=(2,)).stderr


def test_commands_around_a_run_and_in_its_cells(fscost: Run, tmp_path: Path) -> None:
    around = ("--setup", "echo a >>log; echo told", "--cleanup", "echo {mode} >>log")
    inside = ("--prepare", "mkdir x", "--conclude", "du x", "--conclude", "rm -r x")
    options = ("--lab", "fake", "-r", "2", "--on", "ext4", "-L", "mode", "b,c", "-o", "out")
    said = fscost("compare", *options, *around, *inside, "--", "touch", "x/{mode}")
    # Setup and cleanup run once for each run, not for each cell; their output stays apart from the
    # tables.
    assert (tmp_path / "log").read_text().split() == ["a", "b", "a", "c"]
    assert "told" not in said.stdout
    steps = load(tmp_path / "out/mode-b").manifest.workload["steps"]
    assert [(step["name"], step["measured"]) for step in steps] == [
        ("prepare", False),
        ("run", True),
        ("conclude-1", False),
        ("conclude-2", False),
    ]
    # Late writes of the measured command are charged to it, not to the next step.
    assert steps[1]["settle"] == "remount"


def test_several_commands_are_phases_of_their_own(fscost: Run, tmp_path: Path) -> None:
    options = ("--lab", "fake", "-r", "1", "--on", "ext4", "-L", "rows", "10,20", "-o", "out")
    steps = ("--step", "load=./load {rows}", "--step", "query-all=./query; exit 1")
    around = ("--prepare", "mkdir x", "--conclude", "rm -r x", "--ignore-failure")
    fscost("compare", *options, *around, *steps)
    workload = load(tmp_path / "out/rows-20").manifest.workload
    assert workload["name"] == "load, query-all"
    assert [(step["name"], step["measured"], step["settle"]) for step in workload["steps"]] == [
        ("prepare", False, "sync"),
        ("load", True, "sync"),
        ("query-all", True, "remount"),
        ("conclude", False, "sync"),
    ]
    assert workload["steps"][1]["shell"] == "( ./load 20\n) || true"
    shown = fscost("show", "out/rows-20").stdout
    assert shown.startswith("rows=20: commands of your own\n")


def test_steps_of_a_suite(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "fscost.toml").write_text(
        "version = 1\nprofiles = ['ext4']\nstop = {repetitions = 1}\n"
        "[workloads.db]\nsteps = {load = '{here}/load {mode}', query = 'true'}\n"
        "lists = {mode = ['a', 'b']}\n"
    )
    fscost("run", "--lab", "fake", "-o", "out")
    found = load(tmp_path / "out/db-mode-b").manifest.workload["steps"]
    assert [(step["name"], step["shell"]) for step in found] == [
        ("load", f"{tmp_path}/load b"),
        ("query", "true"),
    ]


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--step", "load"], "--step 'load' is not NAME=COMMAND"),
        (["--step", "load= "], "--step load= is empty"),
        (["--step", "a=x", "--step", "a=y"], "--step a is given twice"),
        (["--step", "Load=x"], "--step 'Load' cannot name a phase"),
        (["--step", "total=x"], "--step 'total' cannot name a phase"),
        (["--step", "conclude-1=x"], "--step 'conclude-1' cannot name a phase"),
        (["--step", "a=x", "--warmup", "2"], "--warmup repeats one command"),
        (["--step", "a=x", "--scale", "2"], "--scale requires a built-in workload"),
        (["--step", "a=x", "--run", "b=y"], "--run already gives the commands"),
        (["--step", "a=x", "--", "true"], "--step and a command after -- cannot be combined"),
    ],
)
def test_steps_that_cannot_be_measured(fscost: Run, arguments: list[str], cause: str) -> None:
    said = fscost("compare", "--lab", "fake", *arguments, check=(2,)).stderr
    assert cause in said
    assert len(said.splitlines()) == 2


def test_cleanup_follows_a_failure_and_not_a_failed_setup(fscost: Run, tmp_path: Path) -> None:
    options = ("--on", "ext4", "--cleanup", "echo cleaned >>log")
    fscost("compare", "--lab", "fake:fail=ext4", "-r", "1", *options, "--", "true", check=(2,))
    log = tmp_path / "log"
    assert log.read_text() == "cleaned\n"
    said = fscost(
        "compare", "--lab", "fake", *options, "--setup", "exit 3", "--", "true", check=(2,)
    )
    assert "--setup 'exit 3' exited with status 3" in said.stderr
    assert log.read_text() == "cleaned\n"


def test_ageing_is_unmeasured_and_in_its_place(fscost: Run, tmp_path: Path) -> None:
    options = ("--lab", "fake", "-r", "1", "--on", "ext4", "--fill", "50%", "--age", "3")
    fscost("compare", *options, "--aged", "3", "--workload", "read-all", "-o", "out")
    steps = load(tmp_path / "out").manifest.workload["steps"]
    names = [step["name"] for step in steps]
    assert names == ["fill", "age", "unpack", "aged", "read", "read-again"]
    assert [step["measured"] for step in steps] == [False] * 4 + [True] * 2
    assert " - 259200))" in steps[3]["shell"]


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--aged", "0", "--prepare", "true"], "--aged 0 is not a number of days"),
        (["--aged", "nan", "--prepare", "true"], "--aged nan is not a number of days"),
        (["--aged", "3"], "--aged has no files to set back"),
        (["--age", "0"], "--age 0 is not a number of rounds"),
        (["--conclude", " "], "--conclude '' is empty"),
        (["--setup", ""], "--setup '' is not a command"),
    ],
)
def test_what_cannot_be_done_is_refused(fscost: Run, arguments: list[str], cause: str) -> None:
    said = fscost("compare", "--lab", "fake", *arguments, "--", "true", check=(2,)).stderr
    assert cause in said
