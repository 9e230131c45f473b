"""Each row of each write matches the content of that write, on a few random file systems.

`make soak` draws others, and for longer. FSCOST_TAGGED_DRAWS=20 draws that many of each family;
FSCOST_TEST_SEED repeats these.
"""

import random
from pathlib import Path

import pytest
from tests.oracles.tagged_draw import DRAWS, DRAWS_SEED, NATIVE, UNREPEATABLE, drawn, kinds


@pytest.mark.root
@pytest.mark.parametrize(
    ("family", "number"), [(family, number) for family in NATIVE for number in range(DRAWS or 1)]
)
def test_each_row_is_what_its_write_held(family: str, number: int, tmp_path: Path) -> None:
    rng = random.Random(f"{DRAWS_SEED}/{family}/{number}")
    kind = rng.choice([kind for kind in kinds(family) if kind != UNREPEATABLE])
    drawn(family, kind, rng, tmp_path, print).check()
