"""Runs of older versions get the current names of metrics."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fscost.results import CellRecord, Manifest, RunStore, SampleRow, load

OLD = (
    "device_write_bytes",
    "device_fresh_write_bytes",
    "names_write_bytes",
    "address_table_write_bytes",
)


def metrics_of(folder: Path, cell: str) -> list[str]:
    rows = load(folder).samples.to_pylist()
    return [row["metric"] for row in rows if row["cell"] == cell]


def test_an_old_run_loads_and_resumes(
    tmp_path: Path,
    manifest: Manifest,
    record: Callable[..., CellRecord],
    row: Callable[..., SampleRow],
) -> None:
    profiles = [{"name": name} for name in ("ext4", "nilfs2-noatime")]
    folder = tmp_path / "run"
    store = RunStore.create(folder, replace(manifest, profiles=profiles))
    for profile in ("ext4", "nilfs2-noatime"):
        cell = f"{profile}.0"
        rows = [row("work", metric, 1.0, cell=cell, profile=profile) for metric in OLD]
        store.add(record(profile), rows)

    present = ["device_write_bytes", "first_write_bytes", "directory_entries_write_bytes"]
    assert metrics_of(folder, "ext4.0") == [*present, "nat_write_bytes"]
    assert metrics_of(folder, "nilfs2-noatime.0") == [*present, "dat_write_bytes"]

    again = RunStore.reopen(folder)
    again.add(
        record("ext4", 1), [row("work", "first_write_bytes", 2.0, cell="ext4.1", repetition=1)]
    )
    assert metrics_of(folder, "ext4.0") == [*present, "nat_write_bytes"]
    assert metrics_of(folder, "ext4.1") == ["first_write_bytes"]
