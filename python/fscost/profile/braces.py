"""Several spellings in one, as a shell expands them: `ext4 -o commit={5,30}`."""

import re

_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""Braces with a comma: `{disk.journal}` names a disk."""


def expand(spelling: str) -> list[str]:
    """Each combination, the last brace changing first; the spelling itself where it has none."""
    found = _CHOICE.search(spelling)
    if found is None:
        return [spelling]
    before, after = spelling[: found.start()], spelling[found.end() :]
    return [text for each in found[1].split(",") for text in expand(f"{before}{each}{after}")]
