"""Cells and their order: profile × workload × repetition, interleaved."""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fscost.profile.model import Profile
from fscost.workload.model import Workload


@dataclass(frozen=True)
class Cell:
    """One run of a workload on a newly formatted and mounted profile. `seed` is equal for all
    profiles of a repetition, so that they do the same work."""

    profile: Profile
    workload: Workload
    repetition: int
    seed: int
    order: int

    @property
    def id(self) -> str:
        """File name: the profile's slug, then the repetition.

        If the slug differs from the name, it ends in a digest of the name, so that
        `ext4 -O ^has_journal` and `ext4 -O has_journal` get separate folders.
        """
        name = self.profile.name
        slug = re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")[:80]
        if slug != name:
            slug = f"{slug or 'profile'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        return f"{slug}.{self.repetition}"


def repetitions(profiles: Sequence[Profile], workload: Workload, seed: int) -> Iterator[list[Cell]]:
    """Yield repetitions endlessly. Each contains every profile once, in an order shuffled from
    `seed`.

    Interleaving spreads drift of the machine over all profiles. Shuffling prevents the state left
    by the preceding cell from always favouring the same profile.
    """
    order = 0
    repetition = 0
    while True:
        rng = random.Random(f"{seed}/{repetition}")
        shuffled = list(profiles)
        rng.shuffle(shuffled)
        cell_seed = rng.randrange(1 << 32)
        cells = []
        for profile in shuffled:
            cells.append(Cell(profile, workload, repetition, cell_seed, order))
            order += 1
        yield cells
        repetition += 1
