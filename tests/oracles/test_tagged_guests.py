"""The tagged workload on file systems that only a guest's kernel supports: one of the families in
each test run, all of them in a soak."""

import os
import random
from pathlib import Path

import pytest
from tests.conftest import SEED
from tests.oracles.tagged_draw import GUESTS, UNREPEATABLE, drawn, kinds

DRAWS = int(os.environ.get("FSCOST_TAGGED_DRAWS") or 1)


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("family", random.Random(SEED).sample(GUESTS, min(DRAWS, len(GUESTS))))
def test_each_row_is_what_its_write_held(family: str, tmp_path: Path, seed: int) -> None:
    rng = random.Random(f"{seed}/{family}")
    kind = rng.choice([kind for kind in kinds(family) if kind != UNREPEATABLE])
    drawn(family, kind, rng, tmp_path, print).check()
