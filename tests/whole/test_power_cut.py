"""fscost's own results survive a power cut: its recorder says what a run's folder looked like at
any instant on the disk that it was written to."""

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
    """To make a recording of: 4 MiB that do not compress, so that writing it back takes the kernel
    a while."""
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
    """When the disk had done what an fsync had asked for, in the measured interval: what fscost
    took for durable, it may lose from then on no more."""
    work = next(each for each in capture.intervals(recording) if each.name == "work")
    found = []
    for batch in capture.requests(recording):
        times = zip(batch["op"].to_pylist(), batch["complete_ns"].to_pylist(), strict=True)
        found += [
            at_ns for op, at_ns in times if op == "flush" and work.begin_ns <= at_ns <= work.end_ns
        ]
    return found


def whole(results: RunResults) -> int:
    """How many cells the manifest names; each with all that it names."""
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
    """The power fails after any request: what had reached the disk by then is there, in the order
    of the requests, and nothing else."""
    command = f"{sys.executable} {WORK} run {{input}}/log"
    result = bench.done(
        bench.cell(spelled, command, input=log), disk_size_bytes=320 * MIB, keep_recording=True
    )
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
        # In a mount namespace of its own that goes with the process: nothing stays mounted,
        # whatever fails.
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
        # Before the first manifest there is no run yet.
        assert not (folder / MANIFEST).exists()
        print(0)
