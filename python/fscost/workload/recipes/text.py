"""Text with realistic compressibility: random words of a small language."""

import random
from functools import cache

_SYLLABLES = ("ba", "do", "fe", "gi", "ka", "lo", "me", "nu", "pa", "ri", "so", "tu", "va", "ze")


@cache
def vocabulary() -> tuple[str, ...]:
    """Return a fixed list of a thousand words."""
    rng = random.Random("vocabulary")
    return tuple("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(1000))


def text(rng: random.Random, size_bytes: int) -> bytes:
    """Make exactly `size_bytes` bytes of words in lines."""
    words = rng.choices(vocabulary(), k=size_bytes // 3 + 1)
    for i in range(11, len(words), 12):
        words[i] += "\n"
    return " ".join(words)[:size_bytes].encode()
