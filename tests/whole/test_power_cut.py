"""fscost's own results survive a power cut. Its recorder reconstructs a run's folder at any instant
from the disk that it was written to."""

import hashlib
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fscost import capture
from fscost.errors import InputError
from fscost.results import MANIFEST, RunResults, load

pytestmark = pytest.mark.root

MIB = 1 << 20
WORK = Path(__file__).with_name("durable_work.py")
INSTANTS = 10


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder with the log to import as a recording: 4 MiB of incompressible data, so that
    writeback takes a while."""
    content = random.Random(7)
    text = struct.pack("<QQQI", 0x6A736677736872, 1, 16, 512).ljust(512, b"\0")
    for number in range(16):
        text += struct.pack("<QQQQ", 2048 * number, 512, 0, 0).ljust(
            512, b"\0"
        ) + content.randbytes(256 << 10)
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "log").write_bytes(text)
    return folder


def flushes_ns(recording: Path) -> list[int]:
    """Return the times when the disk completed an fsync's flush in the measured interval. Data that
    fscost regards as durable must not be lost from then on."""
    work = next(each for each in capture.intervals(recording) if each.name == "work")
    found = []
    for batch in capture.requests(recording):
        times = zip(batch["op"].to_pylist(), batch["complete_ns"].to_pylist(), strict=True)
        found += [
            at_ns for op, at_ns in times if op == "flush" and work.begin_ns <= at_ns <= work.end_ns
        ]
    return found


def whole(results: RunResults) -> int:
    """Return the number of cells in the manifest, after checking that all files it names are
    complete."""
    for cell in results.manifest.cells:
        for name, expected in cell.files_sha256.items():
            assert hashlib.sha256((results.folder / name).read_bytes()).hexdigest() == expected, (
                name
            )
        assert capture.verify(results.folder / cell.recording)["whole"]
        assert (
            pq.read_table((results.folder / cell.recording).with_name("requests.parquet")).num_rows
            == 16
        )
        assert (results.folder / cell.recording).with_name("exported").stat().st_size > 0
    return len(results.manifest.done)


@pytest.mark.parametrize("spelled", ["xfs", pytest.param("ext4", marks=pytest.mark.long)])
def test_all_that_a_manifest_names_is_whole_at_every_instant(
    bench: Any, log: Path, tmp_path: Path, seed: int, spelled: str
) -> None:
    """The power fails after any request: the disk holds exactly the requests completed by then, in
    their order."""
    command = f"{sys.executable} {WORK} run {{input}}/log"
    result = bench.done(bench.cell(spelled, command, input=log), disk_size_bytes=320 * MIB)
    known = flushes_ns(result.recording)
    assert len(known) >= 12
    spread = random.Random(seed)
    cuts = sorted(
        {
            *known[:: max(1, len(known) // INSTANTS)],
            known[-1],
            *(spread.randrange(known[0], known[-1]) for _ in range(INSTANTS // 2)),
        }
    )
    place = tmp_path / "mounted"
    place.mkdir()
    cells = []
    for number, at_ns in enumerate(cuts):
        image = tmp_path / f"image{number}"
        capture.export_image(result.recording, "main", image, str(at_ns / 1e9))
        # The private mount namespace ends with the process: nothing stays mounted, whatever fails.
        check = subprocess.run(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                f"mount -o loop {image} {place} && exec {sys.executable} {__file__} {place}/run",
            ],
            capture_output=True,
            text=True,
        )
        assert check.returncode == 0, (
            f"cut at {at_ns} ns, {number} of {len(cuts)}: {check.stdout}{check.stderr}"
        )
        cells.append(int(check.stdout))
        image.unlink()
    assert cells == sorted(cells)
    assert cells[-1] == 3
    assert len(set(cells)) >= 3, cells


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    try:
        print(whole(load(folder)))
    except InputError:
        # Before the first manifest is written there is no run.
        assert not (folder / MANIFEST).exists()
        print(0)
