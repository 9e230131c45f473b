"""A run's folder reads back exactly as it was written, and a kill leaves it consistent."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fscost.results import (
    SAMPLES,
    SCHEMA,
    CellRecord,
    Manifest,
    RunStore,
    SampleRow,
    load,
    with_totals,
)


def test_what_is_written_is_what_is_read(run: Path, manifest: Manifest) -> None:
    found = load(run)
    assert found.manifest.command_line == manifest.command_line
    assert [cell.cell for cell in found.manifest.done] == ["ext4.0"]
    assert [cell.because for cell in found.manifest.failed] == ["no"]
    assert found.manifest.done[0].facts == {"mounted": "–"}
    assert found.samples.schema == SCHEMA
    assert found.samples.column("phase").to_pylist() == ["work", "total"]


def test_anyone_can_read_the_parquet_file(run: Path) -> None:
    assert pq.read_table(run / SAMPLES).to_pylist()[0]["value"] == 4096.0


def test_a_reopened_run_goes_on(
    run: Path, record: Callable[..., CellRecord], row: Callable[..., SampleRow]
) -> None:
    store = RunStore.reopen(run)
    store.add(
        record("ext4", 1),
        with_totals([row("work", "device_write_bytes", 1.0, cell="ext4.1", repetition=1)]),
    )
    assert load(run).samples.num_rows == 4
    assert load(run).samples.equals(store.results.samples)


def test_samples_that_the_manifest_does_not_know_are_left_out(run: Path) -> None:
    """A kill between writing the two files leaves samples that the manifest does not list."""
    before = (run / "manifest.json").read_bytes()
    store = RunStore.reopen(run)
    rows = [
        SampleRow(**{**r, "cell": "ext4.1", "repetition": 1})
        for r in store.results.samples.to_pylist()
    ]
    store.add(CellRecord("ext4.1", "ext4", 1, 1, 2, "done", 1.0, *[""] * 4, {}), rows)
    (run / "manifest.json").write_bytes(before)
    assert set(load(run).samples.column("cell").to_pylist()) == {"ext4.0"}


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from conftest import a_manifest, a_record, a_row
from fscost.results import RunStore, with_totals
store = RunStore.create(Path(sys.argv[1]), a_manifest())
print("ready", flush=True)
for i in range(10_000):
    rows = [a_row("work", "device_write_bytes", float(i), cell=f"ext4.{i}", repetition=i)] * 1
    store.add(a_record("ext4", i), with_totals(rows))
"""


@pytest.mark.parametrize("attempt", range(6))
def test_a_kill_at_any_instant_leaves_one_state_or_the_next(
    tmp_path: Path, attempt: int, seed: int
) -> None:
    folder = tmp_path / "run"
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), here], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(random.Random(f"{seed}/{attempt}").uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
    found = load(folder)
    assert [cell.repetition for cell in found.manifest.cells] == list(
        range(len(found.manifest.cells))
    )
    assert found.samples.num_rows == 2 * len(found.manifest.cells)
    RunStore.reopen(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "samples.parquet"]
