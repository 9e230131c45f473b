"""Draws of the tagged workload: random flags of mkfs, random mount options, random work."""

import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.draws import DISK_BYTES, draw
from tests.conftest import SEED
from tests.oracles.bounds import bound
from tests.oracles.tagged_check import Summary
from tests.oracles.tagged_kinds import KINDS
from tests.oracles.tagged_run import DEADLOCKS, SHELL, RefusedError, is_native, run, words

from fscost import profile

NATIVE = ("ext", "xfs", "btrfs")
GUESTS = ("f2fs", "nilfs2", "jfs", "reiserfs", "ntfs3", "exfat", "vfat")
UNREPEATABLE = "threads"
"""The kind whose actions interleave differently each time: soaks draw it, tests do not."""
NOT_FOR = {
    "clones": {"ext", *GUESTS},
    "attributes": {"nilfs2", "exfat", "vfat"},
}
"""Families that cannot do what a kind is about."""
DRAWS = int(os.environ.get("FSCOST_TAGGED_DRAWS") or 0)
DRAWS_SEED = SEED if DRAWS or os.environ.get("FSCOST_TEST_LONG") else 4903557
"""Seed of the draws that tests make: always the same, because a draw beyond its bound, of which
there are some, is for a soak to find."""
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
    kind: str
    summary: Summary

    @property
    def variant(self) -> str:
        """The flags and options that may matter to owners."""
        return " ".join(
            [profile.resolve(self.spelled).type, *sorted(set(re.findall(VARIANTS, self.spelled)))]
        )

    @property
    def lab(self) -> str:
        return "native" if is_native(self.spelled) else "vm"

    def check(self) -> None:
        self.summary.check(bound(self.family, self.kind))


def kinds(family: str) -> list[str]:
    """Return the kinds of workload that suit a family."""
    return [kind for kind in KINDS if family not in NOT_FOR.get(kind, ())]


def spelling(family: str, kind: str, rng: random.Random) -> str:
    """Return a random profile of the family that the kind can run on."""
    if family not in NATIVE:
        return rng.choice(
            [each.name for each in profile.catalogue() if each.type == family and not each.refused]
        )
    spelled = draw(family, rng)
    if kind == "threads":
        spelled = re.sub(rf"(?<!\^){DEADLOCKS}", f"^{DEADLOCKS}", spelled)
    if kind == "clones":
        spelled = spelled.replace("reflink=0", "reflink=1")
    return spelled


def drawn(
    family: str,
    kind: str,
    rng: random.Random,
    folder: Path,
    say: Callable[[str], None],
    *,
    is_long: bool = False,
) -> Drawn:
    """Return how the rows of a draw compare. Draws that mkfs or mount refuses are drawn again."""
    for refused in range(MOST_REFUSED + 1):
        spelled = spelling(family, kind, rng)
        type_ = profile.resolve(spelled).type
        seed, filler = str(rng.randrange(1 << 32)), rng.choice(FILLERS)
        said = words(type_, seed, ACTIONS, filler, kind) + " --long" * is_long
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
        return Drawn(spelled, ran.family, kind, ran.compared())
    raise AssertionError(f"{MOST_REFUSED + 1} draws in a row were refused")
