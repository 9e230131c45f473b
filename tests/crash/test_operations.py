"""Shell commands do what the workloads in Python do."""

import os
import subprocess
from pathlib import Path

import pytest

from fscost.crash import kept, operations, promises, sequences
from fscost.errors import InputError


def tree(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_dir():
            found[name] = None
        else:
            names = os.listxattr(path)
            links = path.stat().st_nlink
            found[name] = (path.read_bytes(), links, {n: os.getxattr(path, n) for n in names})
    return found


def shell(lines: list[str], folder: Path) -> None:
    folder.mkdir()
    script = folder.with_suffix(".sh")
    script.write_text("\n".join(["set -eu", "promised() { :; }", *lines]))
    done = subprocess.run(["sh", script], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("length", "count"), [(1, 10_000), (2, 40), (3, 20)])
def test_a_sequence_leaves_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, count: int
) -> None:
    own, others = tmp_path / "python", tmp_path / "shell"
    own.mkdir()
    monkeypatch.chdir(own)
    found = sequences.sequences(length, count)
    sequences.prepare(found)
    sequences.run(found)
    lines: list[str] = []
    for path in sorted(own.iterdir()):
        lines += ["(", *operations.of_sequence(path.name), ")"]
    shell(lines, others)
    assert tree(others) == tree(own)


@pytest.mark.parametrize("chosen", [tuple(promises.OPERATIONS), ("swap", "mail")])
def test_rounds_of_files_leave_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...]
) -> None:
    own, others = tmp_path / "python", tmp_path / "shell"
    own.mkdir()
    monkeypatch.chdir(own)
    monkeypatch.setattr(kept, "PAUSE_S", 0)
    # They would fill the disk of this machine.
    monkeypatch.setattr(promises, "_type", lambda: "")
    promises.prepare()
    promises.run(9, chosen)
    shell(operations.of_files("tmpfs", 9, chosen), others)
    assert tree(others) == tree(own)
    assert (own / "log").exists() == ("log" in chosen)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("0000 creat A.bar, fsync A.bar; rm -rf A", "is no sequence"),
        ("0000 creat A.bar, sync A.bar", "is no sequence"),
        ("0000 $(reboot), fsync A.bar", "is no call"),
        ("0000 creat A.bar, fsync A.new", "is no sequence"),
        ("0000 unlink A.foo, append A.foo, fsync A.foo", "is impossible"),
        ("log", "is no sequence"),
    ],
)
def test_other_names_are_no_commands(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        operations.of_sequence(name)


@pytest.mark.parametrize(
    ("chosen", "path", "promised"),
    [
        (("spool",), "still-0", ["still-0"]),
        (("spool",), "", ["."]),
        (("log",), "log", []),
        (None, "0000 append A.foo, fdatasync A.foo/A/foo", ["A/foo", "A/foo"]),
    ],
)
def test_a_promise_that_is_older_than_the_workload_is_checked(
    chosen: tuple[str, ...] | None, path: str, promised: list[str]
) -> None:
    """A test without a promise would pass without a check (`xfstest.py`)."""
    lines = list(operations.lines(chosen, "ext4", path, 1))
    found = [line for line in lines if line.startswith("promised ")]
    assert found == [f"promised {each}" for each in promised]
