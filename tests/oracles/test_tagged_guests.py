"""The tagged workload on file systems that only a guest's kernel supports: one of the families in
each test run, all of them in a soak."""

import random
from pathlib import Path

import pytest
from tests.oracles.tagged_draw import DRAWS, DRAWS_SEED, GUESTS, UNREPEATABLE, drawn, kinds

FAMILIES = random.Random(DRAWS_SEED).sample(GUESTS, min(DRAWS or 1, len(GUESTS)))


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_each_row_is_what_its_write_held(family: str, tmp_path: Path) -> None:
    rng = random.Random(f"{DRAWS_SEED}/{family}")
    kind = rng.choice([kind for kind in kinds(family) if kind != UNREPEATABLE])
    drawn(family, kind, rng, tmp_path, print).check()
