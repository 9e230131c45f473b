"""Text that compresses about as text does: words of a small language drawn at random."""

import random
from functools import cache

_SYLLABLES = ("ba", "do", "fe", "gi", "ka", "lo", "me", "nu", "pa", "ri", "so", "tu", "va", "ze")


@cache
def vocabulary() -> tuple[str, ...]:
    """Always the same thousand words."""
    rng = random.Random("vocabulary")
    return tuple("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(1000))


def text(rng: random.Random, size_bytes: int) -> bytes:
    """Exactly `size_bytes` bytes of words in lines."""
    words = rng.choices(vocabulary(), k=size_bytes // 3 + 1)
    for i in range(11, len(words), 12):
        words[i] += "\n"
    return " ".join(words)[:size_bytes].encode()
