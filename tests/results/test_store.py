"""A run's folder reads back exactly as it was written, and a kill leaves it consistent."""

import hashlib
import json
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fscost.errors import DiskFullError, InputError
from fscost.results import (
    JOURNAL,
    SAMPLES,
    SCHEMA,
    CellRecord,
    Manifest,
    RunStore,
    SampleRow,
    journal,
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
    left = {path.name for path in folder.iterdir()} - {JOURNAL}
    assert left == {"manifest.json", "samples.parquet"}


def test_cells_between_whole_writes_are_in_the_journal(
    run: Path, record: Callable[..., CellRecord], row: Callable[..., SampleRow]
) -> None:
    """Each cell is on disk at once; the files are written whole a few times only."""
    store = RunStore.reopen(run)
    writes = 0
    for number in range(1, 200):
        name = f"ext4.{number}"
        store.manifest.elapsed_s = float(number)
        rows = with_totals([row("work", "device_write_bytes", 1.0, cell=name, repetition=number)])
        store.add(record("ext4", number), rows)
        writes += not (run / JOURNAL).exists()
        if number % 37 == 0:
            found = load(run)
            assert found.samples.equals(store.results.samples)
            assert found.manifest == store.manifest
    assert writes < 80
    # The run is killed between its two files: the samples of the journal are in both.
    pq.write_table(store.results.samples, run / SAMPLES)
    assert load(run).samples.sort_by("cell").equals(store.results.samples.sort_by("cell"))
    with (run / JOURNAL).open("ab") as file:
        file.write(b'{"after": 1')  # the run is killed while it writes a line
    again = RunStore.reopen(run)
    assert load(run).manifest == store.manifest
    again.save()
    assert not (run / JOURNAL).exists()
    assert again.results.samples.equals(store.results.samples)
    assert load(run).manifest == store.manifest


def test_a_journal_that_cannot_grow_is_one_error_that_names_it(
    run: Path, record: Callable[..., CellRecord]
) -> None:
    """EFBIG, which is handled like a full disk. The cells before stay readable."""
    entry = journal.Entry("", 1.0, record("ext4", 1), [])
    journal.append(run, entry)
    size = (run / JOURNAL).stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with pytest.raises(DiskFullError, match=rf"{JOURNAL} cannot be written: File too large"):
            journal.append(run, entry)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(load(run).manifest.cells) == 2


def test_a_journal_of_an_earlier_manifest_is_ignored(
    run: Path, record: Callable[..., CellRecord], row: Callable[..., SampleRow]
) -> None:
    """A kill after the files were written whole leaves it."""
    store = RunStore.reopen(run)
    for number in range(1, 26):
        rows = [row("work", "device_write_bytes", 1.0, cell=f"ext4.{number}", repetition=number)]
        store.add(record("ext4", number), with_totals(rows))
    journal = (run / JOURNAL).read_bytes()
    store.save()
    (run / JOURNAL).write_bytes(journal)
    assert load(run).manifest == store.manifest
    store.drop(["ext4.25"])
    assert load(run).manifest == store.manifest
    assert "ext4.25" not in load(run).samples["cell"].to_pylist()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda line: line.replace(b'"after"', b'"before"'), "line 1: after is missing"),
        (lambda line: line.replace(b"4096.0", b"NaN").replace(b"1.0]", b"NaN]"), "NaN is not JSON"),
        (lambda line: line.replace(b', "work", true', b', "work"'), "does not have 11 values"),
        (lambda line: line.replace(b'"work", true', b'"work", 17'), "not the samples that fscost"),
        (lambda line: line.replace(b'"bytes", 1.0', b'"bytes", 2.0'), "do not match manifest"),
        (lambda line: line.replace(b'"recording": ""', b'"recording": "/etc"'), "leads out of"),
        (lambda line: line + line, "a second time"),
        (lambda line: b"[" * 100_000 + b"\n", "line 1"),
    ],
)
def test_a_damaged_journal_is_one_error(
    run: Path,
    record: Callable[..., CellRecord],
    row: Callable[..., SampleRow],
    damage: Callable[[bytes], bytes],
    words: str,
) -> None:
    store = RunStore.reopen(run)
    number = 0
    while not (run / JOURNAL).exists():
        number += 1
        rows = [row("work", "device_write_bytes", 1.0, cell=f"ext4.{number}", repetition=number)]
        store.add(record("ext4", number), with_totals(rows))
    line = (run / JOURNAL).read_bytes()
    (run / JOURNAL).write_bytes(damage(line))
    with pytest.raises(InputError, match=words):
        load(run)


def test_the_digest_of_the_file_stands_for_those_of_its_cells(
    run: Path, record: Callable[..., CellRecord], row: Callable[..., SampleRow]
) -> None:
    """Those of many cells would take most of the time; only a file that was written after its
    manifest, or a cell of the journal, needs them."""
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["samples_sha256"] == hashlib.sha256((run / SAMPLES).read_bytes()).hexdigest()
    manifest["cells"][0]["samples_sha256"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert load(run).samples.num_rows == 2
    table = load(run).samples
    pq.write_table(table, run / SAMPLES, compression="none")
    with pytest.raises(InputError, match=r"ext4\.0' do not match"):
        load(run)
