"""Each row of each write matches the content of that write, on a few random file systems.

`make soak` draws for longer. FSCOST_TAGGED_DRAWS=20 draws that many of each family;
FSCOST_TEST_SEED repeats a run.
"""

import os
import random
from pathlib import Path

import pytest
from tests.oracles.tagged_draw import NATIVE, UNREPEATABLE, drawn, kinds

DRAWS = int(os.environ.get("FSCOST_TAGGED_DRAWS") or 1)


@pytest.mark.root
@pytest.mark.parametrize(
    ("family", "number"), [(family, number) for family in NATIVE for number in range(DRAWS)]
)
def test_each_row_is_what_its_write_held(
    family: str, number: int, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"{seed}/{family}/{number}")
    kind = rng.choice([kind for kind in kinds(family) if kind != UNREPEATABLE])
    drawn(family, kind, rng, tmp_path, print).check()
