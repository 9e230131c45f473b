"""Every option and argument that names an output, and every file that fscost writes by itself,
tried on a device node, a symlink, a hard link, a FIFO, a folder, a write-protected file and a full
disk."""

import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fscost.cli.app import COMMANDS, command
from fscost.errors import FscostError
from fscost.lab.native.agent import run_agent
from fscost.results import MANIFEST, SAMPLES

READS = {
    ("compare", "source"),
    ("compare", "resume"),
    ("compare", "modules"),
    ("compare", "kernel"),
    ("crash", "modules"),
    ("crash", "kernel"),
    ("compare", "writable"),
    ("compare", "device"),
    ("compare", "erase_device"),
    ("show", "run"),
    ("report", "run"),
    ("open", "run"),
    ("plot", "run"),
    ("explain", "sources"),
    ("study run", "source"),
    ("study run", "disk"),
    ("run", "resume"),
    ("run", "modules"),
    ("run", "kernel"),
    ("run", "against"),
    ("study run", "resume"),
    ("study run", "modules"),
    ("study run", "kernel"),
    ("study show", "folder"),
    ("study page", "folders"),
    ("study page", "answers"),
    ("recording info", "recording"),
    ("recording verify", "recording"),
    ("recording export", "recording"),
    ("recording strip", "recording"),
    ("recording fetch", "run"),
    ("recording import", "log"),
    ("compare", "ssd"),
    ("show", "ssd"),
    ("wear", "source"),
    ("wear", "ssd"),
    ("wear", "now"),
    ("diff", "ssd"),
    ("devices", "name"),
    ("explain", "ssd"),
    ("diff", "runs"),
    ("ls", "folder"),
    ("serve", "folder"),
    ("replay", "source"),
    ("crash", "words"),
    ("crash", "resume"),
    ("replay", "disk"),
    ("compare", "disk"),
    ("run", "file"),
    ("calibrate", "device"),
    ("calibrate", "erase_device"),
}
"""Parameters that name an input, or a device that is erased only when confirmed."""
ELSEWHERE = {
    ("calibrate", "out"),
    ("crash", "out"),
    ("crash", "image"),
    ("crash", "script"),
    ("crash", "xfstests"),
}
"""Parameters that tests/calibrate tries, beside a device, and tests/whole/test_crash.py and
test_crash_scripts.py as root."""
PATHS = re.compile(r"\b(FILE|DIR|PATH|VMLINUZ|RECORDING|RUN|OUT|LOG|MODEL)\b|/dev")
"""Names in the help for a parameter that takes a path."""


@dataclass(frozen=True)
class Writer:
    """A command line with OUT in place of the path. A file under that name is replaced, or must not
    exist; a folder must be new or empty."""

    words: tuple[str, ...]
    is_new: bool = False


WRITES = {
    ("compare", "csv"): Writer(
        (
            "compare",
            "--lab",
            "fake",
            "--on",
            "ext4",
            "--max-repetitions",
            "1",
            "--csv",
            "OUT",
            "--",
            "true",
        )
    ),
    ("compare", "markdown"): Writer(
        (
            "compare",
            "--lab",
            "fake",
            "--on",
            "ext4",
            "--max-repetitions",
            "1",
            "--markdown",
            "OUT",
            "--",
            "true",
        )
    ),
    ("compare", "out"): Writer(
        (
            "compare",
            "--lab",
            "fake",
            "--on",
            "ext4",
            "--max-repetitions",
            "1",
            "--out",
            "OUT",
            "--",
            "true",
        ),
        is_new=True,
    ),
    ("diff", "junit"): Writer(("diff", "run", "run2", "--junit", "OUT")),
    ("diff", "markdown"): Writer(("diff", "run", "run2", "--markdown", "OUT")),
    ("report", "out"): Writer(("report", "run", "--out", "OUT")),
    ("plot", "out"): Writer(
        ("plot", "run", "--chart", "wall_s", "--format", "svg", "--out", "OUT")
    ),
    ("show", "csv"): Writer(("show", "run", "--csv", "OUT")),
    ("show", "markdown"): Writer(("show", "run", "--markdown", "OUT")),
    ("diff", "csv"): Writer(("diff", "run", "run2", "--csv", "OUT")),
    ("explain", "parquet"): Writer(
        ("explain", "recording", "--all", "--parquet", "OUT"), is_new=True
    ),
    ("replay", "csv"): Writer(("replay", "recording", "--disk", "main=nvme", "--csv", "OUT")),
    ("replay", "markdown"): Writer(
        ("replay", "recording", "--disk", "main=nvme", "--markdown", "OUT")
    ),
    ("wear", "csv"): Writer(("wear", "recording", "--ssd", "sd-card-32gb", "--csv", "OUT")),
    ("wear", "markdown"): Writer(
        ("wear", "recording", "--ssd", "sd-card-32gb", "--markdown", "OUT")
    ),
    ("study run", "out"): Writer(
        ("study", "run", "journal-tax", "--lab", "fake", "--max-repetitions", "1", "--out", "OUT"),
        is_new=True,
    ),
    ("study run", "markdown"): Writer(
        (
            "study",
            "run",
            "journal-tax",
            "--lab",
            "fake",
            "--max-repetitions",
            "1",
            "--markdown",
            "OUT",
        )
    ),
    ("run", "out"): Writer(("run", "suite.toml", "--lab", "fake", "-r", "1", "--out", "OUT")),
    ("study page", "out"): Writer(("study", "page", "study", "-o", "OUT")),
    ("study show", "markdown"): Writer(("study", "show", "study", "--markdown", "OUT")),
    ("recording export", "out"): Writer(
        ("recording", "export", "recording", "OUT", "--as", "image"), is_new=True
    ),
    ("recording strip", "out"): Writer(("recording", "strip", "recording", "OUT"), is_new=True),
    ("recording import", "recording"): Writer(("recording", "import", "log", "OUT"), is_new=True),
}
FORMS = {
    "as parquet": Writer(
        ("recording", "export", "recording", "OUT", "--as", "parquet"), is_new=True
    ),
    "as dm-log-writes": Writer(
        ("recording", "export", "recording", "OUT", "--as", "dm-log-writes"), is_new=True
    ),
}
FILES = {
    name: writer
    for name, writer in (WRITES | FORMS).items()
    if name not in (("compare", "out"), ("run", "out"), ("study run", "out"))
}
SOURCES = {
    "run": (
        "compare",
        "--lab",
        "fake",
        "--on",
        "ext4",
        "--max-repetitions",
        "1",
        "--out",
        "run",
        "--",
        "true",
    ),
    "run2": (
        "compare",
        "--lab",
        "fake",
        "--on",
        "ext4",
        "--max-repetitions",
        "1",
        "--out",
        "run2",
        "--",
        "true",
    ),
    "study": (
        "study",
        "run",
        "journal-tax",
        "--lab",
        "fake",
        "--max-repetitions",
        "1",
        "--out",
        "study",
    ),
    "recording": ("recording", "import", "log", "recording"),
}
"""Inputs of the writers, by name in the test's folder."""
Run = Callable[..., Any]


def named(name: Any) -> str:
    return name if isinstance(name, str) else " --".join(name)


def parameters(found: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a command and its subcommands that may be a path: those parsed as a
    path, and those whose help says FILE, DIR or /dev."""
    for name, each in getattr(found, "commands", {}).items():
        yield from parameters(each, (*path, name))
    for parameter in () if hasattr(found, "commands") else found.params:
        shown = str(getattr(parameter, "metavar", "") or "")
        if PATHS.search(shown) or "pathlib" in f"{vars(parameter)}":
            yield " ".join(path), str(parameter.name)


def test_every_parameter_that_may_be_a_path_is_listed_here() -> None:
    """A new option that writes needs a row in WRITES, where it is tried on all kinds of files. A
    new option that reads needs a row in READS."""
    found = {parameter for name in COMMANDS for parameter in parameters(command(name), (name,))}
    assert found - READS - WRITES.keys() - ELSEWHERE == set()
    assert READS | WRITES.keys() | ELSEWHERE <= found


@pytest.fixture
def made(fscost: Run, tmp_path: Path) -> Path:
    """Create a log to make a recording from, and return the folder to write to."""
    entries = [(2048, 1, b"\x11" * 512), (4096, 1, b"\x22" * 512)]
    log = struct.pack("<QQQI", 0x6A736677736872, 1, len(entries), 512).ljust(512, b"\0")
    for sector, count, data in entries:
        log += struct.pack("<QQQQ", sector, count, 0, 0).ljust(512, b"\0") + data
    (tmp_path / "log").write_bytes(log)
    (tmp_path / "suite.toml").write_text("version = 1\n[workloads.one]\ncommand = 'true'\n")
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def write(made: Path, fscost: Run) -> Run:
    """Return a function that runs a writer with a path."""

    def run(name: Any, path: Path, check: tuple[int, ...] = (0,)) -> Any:
        writer = (WRITES | FORMS)[name]
        for source, words in SOURCES.items():
            if (
                source in writer.words[1:]
                and (source != "study" or {"show", "page"} & {*writer.words})
                and not (made.parent / source).exists()
            ):
                fscost(*words, check=(0, 1))
        # For runs without --out: the folder is named after the current second, and the next run may
        # begin in the same second.
        shutil.rmtree(made.parent / "fscost-runs", ignore_errors=True)
        return fscost(*(str(path) if word == "OUT" else word for word in writer.words), check=check)

    return run


def is_new(name: Any) -> bool:
    return (WRITES | FORMS)[name].is_new


@pytest.mark.root
@pytest.mark.parametrize("name", FILES, ids=named)
def test_a_device_node_is_written_and_never_replaced(write: Run, made: Path, name: Any) -> None:
    """F0: `--csv /dev/null` as root replaced the machine's /dev/null. The test makes nodes in its
    own folder, so that a failure does no harm."""
    null, full = made / "null", made / "full"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    write(name, null, check=(2,) if is_new(name) else (0,))
    said = write(name, full, check=(2,)).stderr
    assert ("exists" if is_new(name) else "No space left on device") in said
    assert all(stat.S_ISCHR(node.lstat().st_mode) for node in (null, full))
    assert sorted(path.name for path in made.iterdir()) == ["full", "null"]


@pytest.mark.parametrize("name", FILES, ids=named)
def test_links_regular_files_and_folders(write: Run, made: Path, name: Any) -> None:
    target = made / "target"
    for link, to in (("dangling", "target"), ("link", "target")):
        (made / link).symlink_to(to)
        ended = write(name, made / link, check=(2,) if is_new(name) else (0,))
        assert (made / link).is_symlink()
        assert target.exists() == (not is_new(name)), ended.stderr
        if is_new(name):
            assert f"{link} exists" in ended.stderr
    target.unlink(missing_ok=True)
    target.write_bytes(b"old")
    target.chmod(0o640)
    (made / "other").hardlink_to(target)
    write(name, target, check=(2,) if is_new(name) else (0,))
    assert (made / "other").read_bytes() == b"old"
    assert (target.read_bytes() == b"old") == is_new(name)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o440)
    before = target.read_bytes()
    said = write(name, target, check=(2,)).stderr
    assert ("exists" if is_new(name) else "write-protected") in said
    assert target.read_bytes() == before
    (made / "folder").mkdir()
    assert ("exists" if is_new(name) else "is a folder") in write(
        name, made / "folder", check=(2,)
    ).stderr
    assert sorted(path.name for path in made.iterdir()) == [
        "dangling",
        "folder",
        "link",
        "other",
        "target",
    ]


@pytest.mark.parametrize("name", FILES, ids=named)
def test_a_fifo_is_written_to_its_reader(write: Run, made: Path, name: Any) -> None:
    fifo = made / "fifo"
    os.mkfifo(fifo)
    assert ("exists" if is_new(name) else "No such device or address") in write(
        name, fifo, check=(2,)
    ).stderr
    # The reader copies to a file: a page is larger than two pipes hold if nobody reads them.
    read = made / "read"
    # Both ends are open before anybody writes. A reader that opened the FIFO after the writer had
    # closed it would wait for ever.
    holder = os.open(fifo, os.O_RDWR)
    end = os.open(fifo, os.O_RDONLY)
    with read.open("wb") as out, subprocess.Popen(["cat"], stdin=end, stdout=out) as reader:
        os.close(end)
        try:
            write(name, fifo, check=(2,) if is_new(name) else (0,))
        finally:
            os.close(holder)
        assert reader.wait(timeout=60) == 0
    assert (read.stat().st_size > 0) == (not is_new(name))
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


@pytest.mark.root
@pytest.mark.parametrize("name", FILES, ids=named)
def test_a_full_disk_is_one_error_and_the_old_file_stays(
    write: Run, made: Path, small_disk: Callable[[str], Path], name: Any
) -> None:
    place = small_disk("16k")
    if not is_new(name):
        (place / "out").write_bytes(b"old")
    (place / "rest").write_bytes(b"x" * shutil.disk_usage(place).free)
    said = write(name, place / "out", check=(2,)).stderr
    assert said.count("fscost:") == 1, said
    assert "No space left on device" in said or "are free there" in said, said
    assert sorted(path.name for path in place.iterdir()) == (
        ["rest"] if is_new(name) else ["out", "rest"]
    )
    assert is_new(name) or (place / "out").read_bytes() == b"old"


@pytest.mark.parametrize(
    "name", [("compare", "out"), ("run", "out"), ("study run", "out")], ids=named
)
def test_a_runs_folder_is_new_or_empty(write: Run, made: Path, name: Any) -> None:
    (made / "file").write_bytes(b"old")
    (made / "dangling").symlink_to("nowhere")
    os.mkfifo(made / "fifo")
    (made / "elsewhere").mkdir()
    (made / "elsewhere" / "mine").write_bytes(b"old")
    (made / "link").symlink_to("elsewhere")
    for other in ("file", "dangling", "fifo", "link", "elsewhere"):
        write(name, made / other, check=(2,))
    assert (made / "file").read_bytes() == b"old"
    assert [path.name for path in (made / "elsewhere").iterdir()] == ["mine"]
    assert stat.S_ISFIFO((made / "fifo").lstat().st_mode)


@pytest.mark.parametrize("name", [MANIFEST, SAMPLES, "study.md", "study.json"])
def test_links_in_a_runs_folder_lead_nowhere(
    write: Run, made: Path, fscost: Run, name: str
) -> None:
    """Files that fscost writes by itself when it resumes a run are never written through links,
    whoever owns them: who unpacks an archive owns all its links."""
    victim = made / "victim"
    victim.write_bytes(b"root's")
    folder = made.parent / "study"
    write(("study show", "markdown"), made / "x")
    (folder / name).rename(folder / "moved")
    (folder / name).symlink_to(victim)
    words = (
        "study",
        "run",
        "journal-tax",
        "--lab",
        "fake",
        "--resume",
        str(folder),
        "--max-repetitions",
        "2",
    )
    assert name in fscost(*words, check=(2,)).stderr
    assert victim.read_bytes() == b"root's"


@pytest.mark.parametrize("command", ["report", "open"])
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_page_in_a_runs_folder_follows_no_link(
    write: Run, made: Path, fscost: Run, command: str, is_dangling: bool
) -> None:
    victim = made / "victim"
    if not is_dangling:
        victim.write_bytes(b"mine")
        os.utime(victim, (0, 0))  # so that `open` makes a newer page
    write(("show", "csv"), made / "x")
    page = made.parent / "run" / "report.html"
    page.symlink_to(victim)
    said = fscost(command, str(page.parent), check=(2,)).stderr
    assert f"{page} is a symbolic link" in said
    assert page.is_symlink()
    assert not victim.exists() if is_dangling else victim.read_bytes() == b"mine"
    page.unlink()
    fscost(command, str(page.parent))
    assert page.is_file()


def test_the_agents_complaints_go_to_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"root's")
    (tmp_path / "agent.log").symlink_to("victim")
    with pytest.raises(FscostError, match="exists"):
        run_agent(Path(sys.executable), {}, tmp_path / "agent.log", 5, lambda event: None)
    assert (tmp_path / "victim").read_bytes() == b"root's"
