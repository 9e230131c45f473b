"""Brace expansion of profile spellings, as in a shell: `ext4 -o commit={5,30}`."""

import re

_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""Braces with a comma; braces without one name a disk, as `{disk.journal}`."""


def expand(spelling: str) -> list[str]:
    """Return every combination, with the last brace changing fastest, or only the spelling itself
    if it has no braces to expand."""
    found = _CHOICE.search(spelling)
    if found is None:
        return [spelling]
    before, after = spelling[: found.start()], spelling[found.end() :]
    return [text for each in found[1].split(",") for text in expand(f"{before}{each}{after}")]
