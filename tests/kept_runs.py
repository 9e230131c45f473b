"""Runs whose recordings a test puts there itself."""

from collections.abc import Sequence
from pathlib import Path

from tests import manifests

from fscost.results import CellRecord, RunStore, SampleRow, with_totals

NAMES = ("ext4", "ext4 -o commit=30", "xfs")


def run_of(folder: Path, *recordings: str) -> None:
    """Make a run with a profile for each recording; an empty name is a profile without one."""
    names: Sequence[str] = NAMES[: len(recordings)]
    manifest = manifests.made(profiles=[{"name": name} for name in names], baseline=names[0])
    store = RunStore.create(folder, manifest)
    for number, (name, recording) in enumerate(zip(names, recordings, strict=True)):
        record = CellRecord(
            cell=f"{number}.0",
            profile=name,
            repetition=0,
            seed=1,
            order=number,
            status="done",
            duration_s=1.0,
            because="",
            kind="",
            recording=recording,
            output="",
            facts={},
        )
        row = SampleRow(
            *(record.cell, name, 0, 1, number),
            *("run", True, "", "device_write_bytes", "bytes", 1.0),
        )
        store.add(record, with_totals([row]))
