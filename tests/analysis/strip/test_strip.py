"""`fscost recording strip` on real recordings: no secret is left anywhere, and the explanation is the same row by row."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fscost import capture, profile
from fscost.analyze.explain import explain
from fscost.lab.base import LabOptions
from fscost.lab.native import NativeLab, find_binaries
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

MIB = 1 << 20
CONTENTS = ("secret-inline", "secret-tail", "secret-large", "secret-zipped", "secret-xattr", "secret-synced")
NAMES = ("secret-file", "secret-folder", "secret-target", "secret-lasting", "secret-gone", "secret-label", "secret-entry")
MAKE = r"""
set -e
mkdir secret-folder-1
echo short: secret-inline >secret-folder-1/secret-file-inline
head -c 9000 /dev/zero | tr '\0' z | sed 's/$/ secret-tail/' >secret-file-tail
python3 - <<'END'
import os
with open("secret-file-large", "wb") as file:
    file.write(b"".join(b"secret-large %08d; " % n + os.urandom(64) for n in range(20000)))
with open("secret-file-zipped", "wb") as file:
    file.write(b"secret-zipped " * 20000)
for number in range(400):
    open(f"secret-folder-1/secret-entry-{number:04}-{'x' * (number % 40)}", "w").close()
for number, value in enumerate((b"secret-xattr", b"secret-xattr" * 50)):
    os.setxattr("secret-file-tail", f"user.kept-name-{number}", value)
with open("secret-file-synced", "wb") as file:
    file.write(b"secret-synced " * 400)
    os.fsync(file.fileno())
END
ln -s secret-target-short secret-lasting-link
ln -s secret-folder-1/secret-target-$(printf '%0200d' 0) secret-lasting-long
"""
CHANGE = r"""
set -e
for number in 1 2 3 4 5; do mv secret-folder-1/secret-entry-000$number-* secret-folder-1/secret-gone-$number; done
rm secret-folder-1/secret-entry-02*
rm secret-lasting-link
mkdir secret-folder-2
mv secret-file-tail secret-folder-2/secret-file-moved
cat secret-folder-2/secret-file-moved secret-file-large >/dev/null
"""
WORK = Workload("secrets", (Step("make", shell=MAKE), Step("change", shell=CHANGE)), disk_bytes=300 * MIB)
PROFILES = [
    "ext4",
    "ext4 -L secret-label -b 1024 -o data=journal",
    "ext4 -O inline_data -I 256 -o strictatime",
    "ext3",
    "ext2 -b 1024",
    "xfs -L secret-label",
    "btrfs -L secret-label",
    "btrfs -d dup -o compress-force=zstd",
]


@pytest.fixture(scope="module", params=PROFILES)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = LabOptions(cell_dir=tmp_path_factory.mktemp("cell"), disk_size_bytes=400 * MIB, keep_recording=True)
    result = NativeLab(find_binaries()).run(Cell(profile.resolve(request.param), WORK, 0, 7, 0), options, lambda name: None)
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording is not None
    return result.recording


def everything(recording: Path, folder: Path) -> Iterator[bytes]:
    """All that can be read of a recording: every write's content, the disk at each mark, the marks themselves."""
    log = folder / "log"
    capture.export_dm_log_writes(recording, "main", log)
    yield log.read_bytes()
    log.unlink()
    with capture.opened(recording) as source:
        marks = source.marks()
    yield repr(marks).encode()
    for _, name, _ in marks:
        image = folder / "image"
        capture.export_image(recording, "main", image, name)
        yield image.read_bytes()
        image.unlink()


def found(recording: Path, folder: Path, words: tuple[str, ...]) -> set[str]:
    return {word for content in everything(recording, folder) for word in words if word.encode() in content}


def rows(recording: Path, *, paths: bool) -> pa.Table:
    batches = list(explain(recording).batches())
    table = pa.Table.from_batches(batches)
    return table if paths else table.drop_columns(["path"])


def test_no_secret_is_left(recording: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    spelled = request.node.callspec.params["recording"]
    visible = set(CONTENTS) | set(NAMES)
    visible -= {"secret-label"} if "-L" not in spelled else set()
    visible -= {"secret-zipped", "secret-tail", "secret-synced", "secret-large"} if "compress" in spelled else set()
    # What the test looks for is there before.
    assert found(recording, tmp_path, CONTENTS + NAMES) >= visible
    stripped = tmp_path / "stripped"
    capture.strip(recording, stripped, "replace")
    assert found(stripped, tmp_path, (*CONTENTS, *NAMES, "secret")) == set()
    kept = tmp_path / "kept"
    capture.strip(recording, kept, "keep")
    assert found(kept, tmp_path, CONTENTS) == set()
    assert "secret-entry" in found(kept, tmp_path, NAMES)


def test_the_explanation_stays(recording: Path, tmp_path: Path) -> None:
    for names in ("replace", "keep"):
        stripped = tmp_path / names
        capture.strip(recording, stripped, names)
        assert rows(stripped, paths=names == "keep").equals(rows(recording, paths=names == "keep"))


def test_checkers_find_no_fault(recording: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """With names kept: others are too short for their hashes, or in another order."""
    spelled = request.node.callspec.params["recording"]
    checks = {"ext": ["e2fsck", "-fn"], "xfs": ["xfs_repair", "-n"], "btr": ["btrfs", "check", "--check-data-csum"]}
    stripped, image = tmp_path / "stripped", tmp_path / "image"
    capture.strip(recording, stripped, "keep")
    capture.export_image(stripped, "main", image)
    result = subprocess.run([*checks[spelled[:3]], image], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
