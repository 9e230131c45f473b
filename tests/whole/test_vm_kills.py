"""Whatever process of a run in guests is killed, and whenever: it costs one cell, and nothing
else."""

import os
import random
from pathlib import Path

import pytest

from fscost.lab.vm import VmLab

from .kills import Soak

pytestmark = [pytest.mark.guest, pytest.mark.slow]

MANY = int(os.environ.get("FSCOST_TEST_KILLS", "500"))


def soak(folder: Path, no_snapshots: Path, seed: int, kills: int) -> Soak:
    """So many, one in ten of fscost itself, one in ten while there is no snapshot."""
    print(f"seed {seed}")
    made = Soak(folder, seed, {})
    made.whole()
    draw = random.Random(seed)
    done = 0
    while done < kills:
        chance = draw.random()
        # A run of guests has several kills, the others one.
        done += (
            made.runner()
            if chance < 0.4
            else made.making(no_snapshots)
            if chance < 0.5
            else made.guests()
        )
        print(done, dict(made.outcomes), flush=True)
    made.whole()
    made.whole({"XDG_CACHE_HOME": str(no_snapshots)})
    for outcome, count in sorted(made.outcomes.items()):
        print(*outcome, count, sep=" | ")
    return made


def test_a_few_kills(tmp_path: Path, no_snapshots: Path, vm_lab: VmLab, seed: int) -> None:
    made = Soak(tmp_path, seed, {})
    made.whole()
    made.guests()
    made.runner()
    made.whole()
    assert made.troubles == []


@pytest.mark.long
def test_five_hundred_kills(tmp_path: Path, no_snapshots: Path, vm_lab: VmLab, seed: int) -> None:
    assert soak(tmp_path, no_snapshots, seed, MANY).troubles == []
