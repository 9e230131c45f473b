"""Draws of the tagged workload: random flags of mkfs, random mount options, random work."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.draws import DISK_BYTES, draw
from tests.oracles.bounds import Bound
from tests.oracles.tagged_check import Summary
from tests.oracles.tagged_run import SHELL, RefusedError, run, words

from fscost import profile

NATIVE = ("ext", "xfs", "btrfs")
GUESTS = ("f2fs", "nilfs2", "jfs", "reiserfs", "ntfs3", "exfat", "vfat")
ACTIONS = 150
"""Random actions in each of two steps, besides one action of each kind."""
MOST_REFUSED = 5
"""Maximum number of draws in a row that mkfs or mount may refuse."""
FILLERS = ("dots", "dots", "random", "numbers")
VARIANTS = (
    r"\^has_journal|fast_commit|data=\w+|bigalloc|inline_data|\{disk\.journal\}|\^extents|-b 1024"
    r"|-b size=1024|reflink=1|rmapbt=1|compress|nodata\w+|--mixed|notreelog"
)


@dataclass(frozen=True)
class Drawn:
    """A completed draw."""

    spelled: str
    family: str
    """Name of its bounds."""
    bound: Bound
    summary: Summary

    @property
    def variant(self) -> str:
        """The flags and options that may matter to owners."""
        return " ".join(
            [profile.resolve(self.spelled).type, *sorted(set(re.findall(VARIANTS, self.spelled)))]
        )

    def check(self) -> None:
        self.summary.check(self.bound)


def drawn(
    family: str,
    rng: random.Random,
    folder: Path,
    say: Callable[[str], None],
    *,
    is_long: bool = False,
) -> Drawn:
    """Return how the rows of a draw compare. Draws that mkfs or mount refuses are drawn again."""
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
            ran = run(
                spelled,
                folder / f"run{refused}",
                [f"{SHELL} {said}"] * 2,
                size=4 * DISK_BYTES.get(family, 128 << 20),
            )
        except RefusedError as error:
            say(f"refused: {error}")
            continue
        return Drawn(spelled, ran.family, ran.bound, ran.compared())
    raise AssertionError(f"{MOST_REFUSED + 1} draws in a row were refused")
