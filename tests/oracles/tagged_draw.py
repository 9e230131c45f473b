"""Draws of the tagged workload: random flags of mkfs, random mount options, random work."""

import random
import re
from collections.abc import Callable
from pathlib import Path

from tests.analysis.draws import DISK_BYTES, draw
from tests.oracles.bounds import BOUNDS
from tests.oracles.tagged_check import Summary
from tests.oracles.tagged_run import SHELL, RefusedError, run, words

from fscost import profile

NATIVE = ("ext", "xfs", "btrfs")
GUESTS = tuple(family for family in BOUNDS if family not in NATIVE)
ACTIONS = 150
"""Of each of two steps, besides one of each kind."""
MOST_REFUSED = 5
"""Draws in a row that mkfs or mount may refuse."""
FILLERS = ("dots", "dots", "random", "numbers")
VARIANTS = r"\^has_journal|fast_commit|data=\w+|bigalloc|inline_data|\{disk\.journal\}|\^extents|-b 1024|-b size=1024|reflink=1|rmapbt=1|compress|nodata\w+|--mixed|notreelog"


def summed(
    family: str,
    rng: random.Random,
    folder: Path,
    say: Callable[[str], None],
    *,
    is_long: bool = False,
) -> tuple[str, Summary]:
    """A draw's variant, and how its rows compare. What mkfs or mount refuses is drawn again."""
    for refused in range(MOST_REFUSED + 1):
        if family in NATIVE:
            spelled = draw(family, rng)
        else:
            spelled = rng.choice(
                [
                    each.name
                    for each in profile.catalogue()
                    if each.type == family and not each.refused
                ]
            )
        type_ = profile.resolve(spelled).type
        said = words(type_, str(rng.randrange(1 << 32)), ACTIONS, rng.choice(FILLERS)) + (
            " --long" if is_long else ""
        )
        say(f"PYTHONPATH=. .venv/bin/python -m tests.oracles.tagged_run '{spelled}' -- {said}")
        try:
            summary = run(
                spelled,
                folder / f"run{refused}",
                [f"{SHELL} {said}"] * 2,
                size=4 * DISK_BYTES.get(family, 128 << 20),
            ).compared()
        except RefusedError as error:
            say(f"refused: {error}")
            continue
        return " ".join(
            [
                spelled if family not in NATIVE else type_,
                *sorted(set(re.findall(VARIANTS, spelled))),
            ]
        ), summary
    raise AssertionError(f"{MOST_REFUSED + 1} draws in a row were refused")
