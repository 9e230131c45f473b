"""`fscost recording strip` on real recordings: no secret is left anywhere, the explanation is the
same row by row, and checkers give the same answers."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.analysis.strip import work
from tests.variants import some

from fscost import capture, profile
from fscost.analyze.explain import explain
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.profile import DiskSpec
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

MIB = 1 << 20
PROFILES = {
    "ext4": 1,
    "ext4 -L secret-label -b 1024 -o data=journal": 1,
    "ext4 -O inline_data -I 256 -o strictatime": 1,
    "ext4 -O ea_inode,mmp,^metadata_csum": 1,
    "ext4 -O ea_inode -o acl": 1,
    "ext4 -O fast_commit": 1,
    "ext4-external-journal-data": 2,
    "ext3": 1,
    "ext2 -b 1024": 1,
    "xfs -L secret-label": 1,
    "xfs -b size=1024 -n size=4096": 1,
    "xfs-external-log": 2,
    "btrfs -L secret-label": 1,
    "btrfs -d dup -o compress-force=zstd": 1,
    "btrfs -d raid1 -m raid1": 2,
}
"""Number of disks by profile."""
ALWAYS = ("ext4", "xfs -L secret-label")
REACHED = {
    "ext3": "journal_copy",
    "ext4": "journal_copy",
    "fast_commit": "journal_fast_commit",
    "mmp": "mmp",
    "xfs": "log",
    "btrfs": "log_tree",
}
"""Structure that the workload must write, by a word in the profile's spelling."""


@dataclass(frozen=True)
class Case:
    """One recording, and its stripped versions."""

    spelled: str
    original: Path
    stripped: Mapping[str, Path]

    @property
    def kind(self) -> str:
        return next(kind for kind in ("ext", "xfs", "btrfs") if self.spelled.startswith(kind))

    @property
    def has_remote_values(self) -> bool:
        """True if an attribute may be larger than a block."""
        return self.kind != "ext" or "ea_inode" in self.spelled


def with_disks(spelled: str, count: int) -> profile.Profile:
    known = profile.resolve(spelled)
    if known.disks[1:] or count == 1:
        return known
    return replace(
        known, disks=(DiskSpec(), *(DiskSpec(f"disk{number}") for number in range(1, count)))
    )


@pytest.fixture(scope="module", params=some(PROFILES, 1, ALWAYS))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    folder = tmp_path_factory.mktemp("case")
    (folder / "input").mkdir()
    shutil.copy(Path(__file__).with_name("work.py"), folder / "input")
    case = Case(
        request.param, folder / "original", {names: folder / names for names in ("replace", "keep")}
    )
    steps = [*work.STEPS, *(["remote"] if case.has_remote_values else [])]
    workload = Workload(
        "secrets",
        tuple(Step(step, f"python3 {{input}}/work.py {step}") for step in steps),
        disk_bytes=MIB,
        input=folder / "input",
    )
    options = LabOptions(cell_dir=folder / "cell", disk_size_bytes=400 * MIB)
    options.cell_dir.mkdir()
    cell = Cell(with_disks(case.spelled, PROFILES[case.spelled]), workload, 0, 7, 0)
    result = NativeLab(find_binaries()).run(cell, options, lambda name: None)
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording is not None
    result.recording.rename(case.original)
    for names, path in case.stripped.items():
        capture.strip(case.original, path, names)
    yield case
    shutil.rmtree(folder)


def disks(recording: Path) -> list[str]:
    return [disk["name"] for disk in capture.info(recording)["disks"]]


def marks(recording: Path) -> list[str]:
    with capture.opened(recording) as source:
        return [name for _, name, _ in source.marks()]


def everything(recording: Path, folder: Path) -> Iterator[bytes]:
    """Yield all readable bytes of a recording: the marks, every write's content, each disk at each
    mark."""
    with capture.opened(recording) as source:
        yield repr(source.marks()).encode()
    for disk in disks(recording):
        log, image = folder / "log", folder / "image"
        capture.export_dm_log_writes(recording, disk, log)
        yield log.read_bytes()
        log.unlink()
        for name in marks(recording):
            capture.export_image(recording, disk, image, name)
            yield from extents(image)
            image.unlink()


def extents(image: Path) -> Iterator[bytes]:
    """Yield the data of a sparse file."""
    with image.open("rb") as file:
        end = 0
        # ENXIO: no more data.
        with contextlib.suppress(OSError):
            while True:
                begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
                end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
                yield os.pread(file.fileno(), end - begin, begin)


def found(recording: Path, folder: Path, words: tuple[str, ...]) -> set[str]:
    return {
        word
        for content in everything(recording, folder)
        for word in words
        if word.encode() in content
    }


def test_no_secret_is_left(case: Case, tmp_path: Path) -> None:
    contents, names = set(work.CONTENTS), set(work.NAMES)
    if not case.has_remote_values:
        contents.remove("secret-remote")
    if "compress" in case.spelled:
        contents -= {"secret-zipped", "secret-tail", "secret-synced", "secret-large"}
    if "-L" in case.spelled:
        names.add("secret-label")
    # The secrets that the test looks for are in the original.
    assert (
        found(case.original, tmp_path, (*work.CONTENTS, *work.NAMES, "secret-label"))
        >= contents | names
    )
    assert (
        found(case.stripped["replace"], tmp_path, (*work.CONTENTS, *work.NAMES, "secret")) == set()
    )
    assert found(case.stripped["keep"], tmp_path, work.CONTENTS) == set()
    assert found(case.stripped["keep"], tmp_path, (*work.NAMES, "secret-label")) == names


def rows(recording: Path) -> tuple[pa.Table, pa.ChunkedArray]:
    """Return all columns except paths, and the paths."""
    table = explain(recording).table
    return table.drop_columns(["path"]), table["path"].cast(pa.string())


def test_the_explanation_stays(case: Case) -> None:
    original, paths = rows(case.original)
    assert original.num_rows > 50
    assert {reached for word, reached in REACHED.items() if word in case.spelled} <= set(
        original["structure"].to_pylist()
    )
    kept, kept_paths = rows(case.stripped["keep"])
    assert kept.equals(original)
    if "fast_commit" not in case.spelled:
        assert kept_paths.equals(paths)
    replaced, replaced_paths = rows(case.stripped["replace"])
    assert replaced.equals(original)
    # Renaming is consistent and one-to-one. The workload has no names of one or two bytes, because
    # there may be too few of these.
    pairs = (
        pa.table({"old": paths, "new": replaced_paths})
        .group_by(["old", "new"])
        .aggregate([])
        .to_pylist()
    )
    if "fast_commit" in case.spelled:
        # Digests replace the fast-commit area. A name that only this area contained is unknown, or
        # is another name that the file had.
        files = zip(
            original["inode"].to_pylist(), paths.to_pylist(), kept_paths.to_pylist(), strict=True
        )
        had: dict[int, set[str]] = {}
        told = [
            (inode, new)
            for inode, old, new in files
            if had.setdefault(inode, set()).add(old) or new is not None
        ]
        assert [each for each in told if each[1] not in had[each[0]]] == []
        assert len(told) > 0
        same = pc.fill_null(pc.equal(paths, kept_paths), False)
        pairs = (
            pa.table({"old": paths.filter(same), "new": replaced_paths.filter(same)})
            .group_by(["old", "new"])
            .aggregate([])
            .to_pylist()
        )
    forth: dict[str, str] = {}
    back: dict[str, str] = {}
    for pair in pairs:
        if pair["old"] is None:
            assert pair["new"] is None
            continue
        for old, new in zip(pair["old"].split("/"), pair["new"].split("/"), strict=True):
            assert (forth.setdefault(old, new), back.setdefault(new, old)) == (new, old)
    assert len(forth) > 3
    assert sum("secret" in old for old in forth) > 3


@contextlib.contextmanager
def attached(images: list[Path]) -> Iterator[list[str]]:
    """Attach images as block devices: `btrfs check` finds a file system's other disks only among
    block devices."""
    with contextlib.ExitStack() as stack:
        devices = []
        for image in images:
            attach = subprocess.run(
                ["losetup", "--find", "--show", "--read-only", image],
                check=True,
                capture_output=True,
                text=True,
            )
            devices.append(attach.stdout.strip())
            stack.callback(subprocess.run, ["losetup", "--detach", devices[-1]], check=True)
        yield devices


def checked(case: Case, recording: Path, folder: Path, mark: str) -> tuple[int, list[str]]:
    """Run the file system's own checker; return its exit code and output lines."""
    images = [folder / name for name in disks(recording)]
    for image in images:
        capture.export_image(recording, image.name, image, mark)
    main, *others = [str(image) for image in images]
    with contextlib.ExitStack() as stack:
        if case.kind == "ext":
            words = ["e2fsck", "-fn", *(["-j", *others] if others else []), main]
        elif case.kind == "xfs":
            words = ["xfs_repair", "-n", *(["-l", *others] if others else []), main]
        else:
            main = stack.enter_context(attached(images))[0] if others else main
            words = ["btrfs", "check", "--check-data-csum", main]
        result = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    for image in images:
        image.unlink()
    # e2fsck begins lines with the label, if there is one. The label is a name.
    lines = [
        re.sub(r"^[\w-]+: (?=\*|\d)", "main: ", line)
        for line in result.stdout.replace(main, "main").splitlines()
    ]
    # btrfs check looks for the other disks on every block device, including unrelated devices that
    # come and go.
    lines = [line for line in lines if not re.match(r"ERROR: .*/dev/", line)]
    # The threads of xfs_repair reach their groups in any order.
    return result.returncode, sorted(lines) if case.kind == "xfs" else lines


def test_checkers_say_the_same_with_names_kept(case: Case, tmp_path: Path) -> None:
    """Checkers agree at the end, where nothing needs a replay, and while the file system was
    mounted."""
    assert checked(case, case.original, tmp_path, "end")[0] == 0
    for mark in ("end", "change"):
        assert checked(case, case.stripped["keep"], tmp_path, mark) == checked(
            case, case.original, tmp_path, mark
        )


def test_checkers_say_what_the_documentation_says_of_replaced_names(
    case: Case, tmp_path: Path
) -> None:
    """Indexes find names by hashes, and stripping keeps the hashes of the original names."""
    replaced, original = (
        checked(case, recording, tmp_path, "end")
        for recording in (case.stripped["replace"], case.original)
    )
    code, lines = replaced
    if case.kind != "ext":
        expected = {"xfs": "directory", "btrfs": "Dir items with mismatch hash"}[case.kind]
        said = [line for line in lines if line not in original[1]]
        assert any(expected in line for line in said), said
        assert code != 0
        return
    problems = {re.sub(r"\d+|\(.*\)", "…", line) for line in lines if line not in original[1]}
    assert problems - {""} == {
        "Problem in HTREE directory inode …: block #… has bad min hash",
        "Problem in HTREE directory inode …: block #… has bad max hash",
        "Invalid HTREE directory inode … ….  Clear HTree index? no",
        "main: ********** WARNING: Filesystem still has errors **********",
    }
    assert code == 4
