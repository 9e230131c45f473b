"""A small run on disk and its parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import manifests

from fscost.results import CellRecord, Manifest, RunStore, SampleRow, with_totals

RowMaker = Callable[..., SampleRow]


def a_row(
    phase: str,
    metric: str,
    value: float,
    *,
    unit: str = "bytes",
    disk: str = "",
    measured: bool = True,
    **other: Any,
) -> SampleRow:
    values = {"cell": "ext4.0", "profile": "ext4", "repetition": 0, "seed": 1, "order": 0} | other
    return SampleRow(
        **values, phase=phase, measured=measured, disk=disk, metric=metric, unit=unit, value=value
    )


@pytest.fixture(name="row")
def row_fixture() -> RowMaker:
    return a_row


def a_manifest() -> Manifest:
    return manifests.made(
        command_line=["fscost", "compare", "\udcff"],
        environment={"kernel": {"release": "6.1"}},
        profiles=[{"name": "ext4"}, {"name": "xfs"}],
    )


@pytest.fixture
def manifest() -> Manifest:
    return a_manifest()


def a_record(profile: str, repetition: int = 0, **other: Any) -> CellRecord:
    values: dict[str, Any] = {"seed": 1, "order": 0, "status": "done", "duration_s": 1.0}
    values |= {**dict.fromkeys(("because", "kind", "recording", "output"), ""), "facts": {}} | other
    return CellRecord(
        cell=f"{profile}.{repetition}", profile=profile, repetition=repetition, **values
    )


@pytest.fixture
def record() -> Callable[..., CellRecord]:
    return a_record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one finished and one failed cell."""
    folder = tmp_path / "run"
    store = RunStore.create(folder, a_manifest())
    store.add(
        a_record("ext4", facts={"mounted": "–"}),
        with_totals([a_row("work", "device_write_bytes", 4096.0)]),
    )
    store.add(a_record("xfs", status="failed", because="no"), [])
    return folder
