"""Request for a recipe."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """Option values that the recipe uses, a seed, and for `repository` the path given with
    `--source`."""

    values: Mapping[str, str | int]
    seed: int
    source: Path | None
    on_progress: Callable[[str], None]

    def number(self, name: str) -> int:
        """Return a numeric option."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def rng(self, purpose: str) -> random.Random:
        """Return a separate generator for each purpose, so that an additional draw from one does
        not affect the others."""
        return random.Random(f"{self.seed}/{purpose}")
