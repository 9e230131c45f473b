"""Names, options and commands: accepted values, refused ones, and the messages for them."""

import dataclasses
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fscost import workload
from fscost.errors import InputError
from fscost.workload.load import RESERVED, read_builtin

BUILTINS = [
    "big-and-small",
    "big-file",
    "browser-profile",
    "container-image",
    "fsync-log",
    "iozone",
    "journald",
    "maildir",
    "package-install",
    "photo-import",
    "postgresql",
    "random-read",
    "random-write",
    "read-all",
    "reader-beside-fsync",
    "small-files",
    "snapshot-find",
    "source-tree",
    "sqlite",
    "sync-threads",
    "sysbench-fileio",
]


def test_catalogue_has_them_all_with_a_line_each() -> None:
    assert [builtin.name for builtin in workload.catalogue()] == BUILTINS
    for builtin in workload.catalogue():
        assert builtin.summary
        assert len(builtin.summary) < 140
        assert all(option.summary for option in builtin.options.values())


@pytest.mark.parametrize("name", BUILTINS)
def test_every_step_is_complete(name: str) -> None:
    resolved = workload.resolve(name)
    assert any(step.measured for step in resolved.steps)
    for step in resolved.steps:
        assert "@" not in step.shell.replace('"$@"', ""), "an option that was not filled in"
        assert step.name not in RESERVED
        subprocess.run(["sh", "-n", "-c", step.shell], check=True)


def test_scale_changes_amounts_and_needs() -> None:
    small, large = (
        workload.resolve("small-files", scale=0.5),
        workload.resolve("small-files", scale=2),
    )
    assert dict(small.options)["files"] == 1500
    assert dict(large.options)["files"] == 6000
    assert large.disk_bytes > small.disk_bytes
    assert small.write_bytes_estimate is not None
    assert large.write_bytes_estimate == 4 * small.write_bytes_estimate


def test_given_options_stand_as_they_are_and_needs_follow() -> None:
    plain = workload.resolve("small-files", scale=10)
    given_ = workload.resolve(
        "small-files", scale=10, options={"files": "3000", "file_bytes": "8k"}
    )
    assert dict(given_.options) == {"files": 3000, "file_bytes": 8192}
    assert plain.write_bytes_estimate is not None
    assert given_.write_bytes_estimate == plain.write_bytes_estimate // 5


def test_tiny_scale_keeps_the_minimum() -> None:
    assert dict(workload.resolve("random-write", scale=1e-9).options)["file_mib"] == 16


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e9])
def test_impossible_scales(scale: float) -> None:
    with pytest.raises(InputError, match="--scale"):
        workload.resolve("small-files", scale=scale)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("small-files", {"fiels": "3"}, "no option 'fiels'"),
        ("small-files", {"files": "many"}, "files=many"),
        ("small-files", {"files": "0"}, "at least 1"),
        ("small-files", {"files": "-3"}, "files=-3"),
        ("small-files", {"files": "9" * 5000}, "files="),
        ("small-files", {"files": "٣"}, "files="),
        ("small-files", {"file_bytes": "4x"}, "a size such as"),
        ("sqlite", {"journal": "WAL2"}, "one of delete, truncate, persist, wal"),
        ("source-tree", {"make": " "}, "a shell command"),
        ("source-tree", {"make": "make\0"}, "a shell command"),
    ],
)
def test_impossible_options(name: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        workload.resolve(name, options=options)


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean small-files"):
        workload.resolve("smal-files")
    with pytest.raises(InputError, match="workloads: big-and-small, big-file"):
        workload.resolve("")


def test_sources_are_checked_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        workload.resolve("source-tree", source=tmp_path / "none")
    with pytest.raises(InputError, match="not a git repository"):
        workload.resolve("source-tree", source=tmp_path)
    text = tmp_path / "notes.txt"
    text.write_text("no tarball")
    with pytest.raises(InputError, match="neither a git repository nor a tarball"):
        workload.resolve("source-tree", source=text)
    with pytest.raises(InputError, match="takes no --source"):
        workload.resolve("small-files", source=text)


def test_the_make_command_of_a_source_is_an_option() -> None:
    steps = {
        step.name: step.shell
        for step in workload.resolve(
            "source-tree", options={"make": "make -s defconfig && make -j2"}
        ).steps
    }
    assert steps["make"].endswith("cd tree; make -s defconfig && make -j2")


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)
)
def test_a_command_is_run_exactly_as_given(words: list[str]) -> None:
    try:
        resolved = workload.command(words)
    except InputError:
        assert not shlex.join(words).strip()
        return
    assert [step.name for step in resolved.steps] == ["run"]
    assert shlex.split(resolved.steps[0].shell) == words


def test_a_command_as_text_is_the_shells() -> None:
    assert workload.command("cp a b && make").steps[0].shell == "cp a b && make"


def test_prepare_steps_come_first_unmeasured() -> None:
    resolved = workload.command(["make", "-j2"], prepare=["cp -a /src {dir}/src", "sync -f ."])
    assert [(step.name, step.measured) for step in resolved.steps] == [
        ("prepare-1", False),
        ("prepare-2", False),
        ("run", True),
    ]
    assert resolved.name == "make -j2"


@pytest.mark.parametrize(
    ("words", "prepare"), [([], []), ("  ", []), (["a\0b"], []), (["ls"], [""])]
)
def test_empty_commands(words: list[str] | str, prepare: list[str]) -> None:
    with pytest.raises(InputError):
        workload.command(words, prepare=prepare)


GOOD = """
summary = "one"
disk_mib = 1
write_mib = 1
[options.n]
kind = "count"
default = 1
summary = "number"
[[steps]]
name = "run"
shell = "echo @n@"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("summary", "sumary", "sumary: no such field; there are name, summary"),
        ("default = 1", "", r"options.n.default is missing"),
        (
            "default = 1",
            "default = 1\nname = 'n'",
            r"options.n.name: no such field; there are kind",
        ),
        ("default = 1", "default = []", r"options.n.default: option n=\[\]: not a whole number"),
        ("default = 1", "default = 1\nchoices = [1]", r"choices\[0\] is a number, not a string"),
        ('name = "run"', 'name = ""', r"steps\[0\].name is empty"),
        ('name = "run"', 'name = "run"\nx = 1', r"steps\[0\].x: no such field; there are name, sh"),
        ('summary = "one"', 'summary = "one"\nname = "test"', "name: is given by the file's name"),
        ("disk_mib = 1", 'disk_mib = "1"', "disk_mib is a string, not a whole number"),
        ("disk_mib = 1", "disk_mib = true", "disk_mib is true or false, not a whole number"),
        ("disk_mib = 1", "", "disk_mib is missing"),
        ("@n@", "@m@", "uses undeclared options: m"),
        (
            '"count"',
            '"cuont"',
            "options.n.kind is 'cuont', not 'count', 'bytes', 'choice' or 'shell'",
        ),
        ("default = 1", "default = -1", r"options.n.default"),
        ('name = "run"', 'name = "mkfs"', r"steps\[0\].name: cannot name a phase"),
        (
            'name = "run"',
            'name = "run"\nsettle = "now"',
            "settle is 'now', not 'sync', 'remount' or 'none'",
        ),
        ('name = "run"', 'name = "run"\nmeasured = false', "none is measured"),
        ("[options.n]", "[options", "test.toml:"),
        ("write_mib = 1", 'write_mib = 1\nrecipe = "cake"', "recipe: no such recipe"),
    ],
)
def test_data_files_are_checked_field_by_field(old: str, new: str, words: str) -> None:
    read_builtin("test", GOOD)
    with pytest.raises(InputError, match=words) as caught:
        read_builtin("test", GOOD.replace(old, new, 1))
    assert "test.toml" in str(caught.value)


def test_workloads_are_values() -> None:
    resolved = workload.resolve("small-files")
    assert resolved == workload.resolve("small-files")
    assert dataclasses.replace(resolved, input=Path("/x")) != resolved
