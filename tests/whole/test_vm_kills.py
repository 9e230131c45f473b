"""Killing any process of a guest run, at any time, costs one cell and nothing else."""

import os
from pathlib import Path

import pytest

from fscost.lab.vm import VmLab

from . import kills
from .kill_soak import soak
from .kills import Soak

pytestmark = [pytest.mark.guest, pytest.mark.slow]

MANY = int(os.environ.get("FSCOST_TEST_KILLS", "20"))


@pytest.mark.long
def test_a_few_kills(
    tmp_path: Path, vm_lab: VmLab, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "CELLS", 2)
    made = Soak(tmp_path, seed, {})
    made.whole()
    made.guests()
    made.runner()
    made.whole()
    assert made.troubles == []


@pytest.mark.long
def test_many_kills(tmp_path: Path, no_snapshots: Path, vm_lab: VmLab, seed: int) -> None:
    assert soak(tmp_path, no_snapshots, seed, lambda done: done < MANY).troubles == []
