"""Random flags of mkfs, random mount options, random work: each row of each write is what that write held.

FSCOST_TAGGED_DRAWS=200 draws that many of each family (a soak); FSCOST_TEST_SEED repeats a run.
"""

import os
import random
from pathlib import Path

import pytest
from tests.analysis.draws import DISK_BYTES, draw
from tests.oracles.bounds import BOUNDS
from tests.oracles.tagged_check import DOUBTFUL, WRONG
from tests.oracles.tagged_run import RefusedError, run

pytestmark = pytest.mark.root

DRAWS = [(family, number) for family in BOUNDS for number in range(int(os.environ.get("FSCOST_TAGGED_DRAWS") or 2))]
ACTIONS = 150
MOST_REFUSED = 5
"""Draws in a row that mkfs or mount may refuse."""
LEAST_BYTES = 1 << 20


@pytest.mark.parametrize(("family", "number"), DRAWS)
def test_each_row_is_what_its_write_held(family: str, number: int, tmp_path: Path, seed: int) -> None:
    rng = random.Random(f"{seed}/{family}/{number}")
    for refused in range(MOST_REFUSED + 1):
        spelled = draw(family, rng)
        words = ["--draw", str(rng.randrange(1 << 32)), str(ACTIONS), *(["--dense"] if rng.random() < 0.3 else [])]
        print(f"FSCOST_TEST_SEED={seed}: PYTHONPATH=. .venv/bin/python -m tests.oracles.tagged_run '{spelled}' -- {' '.join(words)}")
        try:
            summary = run(spelled, tmp_path / str(refused), words, size=4 * DISK_BYTES[family])
            break
        except RefusedError as error:
            print(f"refused: {error}")
    print(summary)
    bound = BOUNDS[family]
    assert summary.share(WRONG) <= bound.wrong, bound.reason
    assert summary.share(DOUBTFUL) <= bound.doubtful, bound.reason
    assert summary.compared > LEAST_BYTES or "compress" in spelled
