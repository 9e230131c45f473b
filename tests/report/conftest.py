"""Runs for reports: one of the fake lab with hostile names, and a real one with recordings."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests import manifests

from fscost.results import CellRecord, Manifest, RunStore, SampleRow, with_totals
from fscost.results.metrics import METRICS

HOSTILE = "</script><script>document.title='owned'</script>"
BIDI = 'ext4\u202e"><img src=x onerror=document.title="owned">\x1b[31m'
VALUES = {
    "device_write_bytes": 1 << 20,
    "wall_s": 0.5,
    "device_flushes": 7,
    "directory_entries_write_bytes": 5,
}


def manifest(profiles: list[str]) -> Manifest:
    return manifests.made(
        name=f"run {HOSTILE}",
        fscost_version="0.1",
        command_line=["fscost", "compare", "--", HOSTILE],
        environment={"kernel": {"release": HOSTILE}},
        profiles=[{"name": name} for name in profiles],
        workload={"name": "test", "summary": HOSTILE},
        options={HOSTILE: BIDI},
        baseline=profiles[0],
    )


def samples(profile: str, number: int, repetition: int) -> list[SampleRow]:
    return with_totals(
        [
            SampleRow(
                cell=f"{number}.{repetition}",
                profile=profile,
                repetition=repetition,
                seed=1,
                order=repetition,
                phase="work",
                measured=True,
                disk="",
                metric=metric,
                unit=METRICS[metric].unit,
                value=value * (1 + number) + repetition,
            )
            for metric, value in VALUES.items()
        ]
    )


def make_run(folder: Path, *profiles: str, **facts: object) -> Path:
    """Create a run of these profiles with three repetitions each."""
    store = RunStore.create(folder, manifest([*profiles]))
    for number, profile in enumerate(profiles):
        for repetition in range(3):
            record = CellRecord(
                cell=f"{number}.{repetition}",
                profile=profile,
                repetition=repetition,
                seed=1,
                order=repetition,
                status="done",
                duration_s=1.0,
                because="",
                kind="",
                recording="",
                output="",
                facts=dict(facts),
            )
            store.add(record, samples(profile, number, repetition))
    store.manifest.state = "finished"
    store.save()
    return folder


@pytest.fixture
def made_run(tmp_path: Path) -> Callable[..., Path]:
    return partial(make_run, tmp_path / "run")


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "run"
    make_run(folder, "ext4", BIDI, HOSTILE, plan={"mkfs": [[HOSTILE]], "steps": [HOSTILE]})
    store = RunStore.reopen(folder)
    store.manifest.cells[0] = replace(store.manifest.cells[0], recording="gone")
    store.save()
    return folder


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ext4 and xfs, with a hostile file name and a file that is rewritten often; needs
    root."""
    folder = tmp_path_factory.mktemp("report") / "run"
    work = (
        "import os, pathlib\npathlib.Path('''</script><img src=x onerror=alert(1)>'''.replace('/',"
        " '')).write_text('x')\nwith open('log', 'wb') as file:\n    for _ in range(20):\n       "
        " file.write(b'x' * 100); file.flush(); os.fsync(file.fileno())\n"
    )
    command = [
        Path(sys.executable).with_name("fscost"),
        *("compare", "--lab", "native", "--on", "ext4", "--on", "xfs", "--out", folder),
        *("--max-repetitions", "3", "--", sys.executable, "-c", work),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder
