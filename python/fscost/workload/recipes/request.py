"""What a recipe is asked for."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """The option values that matter to the recipe, a seed, and for `repository` what `--source`
    named."""

    values: Mapping[str, str | int]
    seed: int
    source: Path | None
    on_progress: Callable[[str], None]

    def number(self, name: str) -> int:
        """An option that is a number."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def rng(self, purpose: str) -> random.Random:
        """A generator of its own for each purpose, so that one more draw here changes nothing
        there."""
        return random.Random(f"{self.seed}/{purpose}")
