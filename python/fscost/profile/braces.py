"""Brace expansion of profile spellings, as in a shell: `ext4 -o commit={5,30}`."""

import re
from collections.abc import Iterable

from fscost.errors import InputError

_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""Braces with a comma; braces without one name a disk, as `{disk.journal}`."""


_MOST = 1000
_LONGEST = 4096
"""Maximum number of profiles of a run, and maximum length of a spelling: 26 braces of two choices
in one argument would be 67 million profiles."""


def expand(spelling: str) -> list[str]:
    """Return every combination, with the last brace changing fastest, or only the spelling itself
    if it has no braces to expand. InputError if there are too many."""
    if len(spelling) > _LONGEST:
        raise InputError(
            f"{spelling[:40]}… has {len(spelling):,} characters", f"write at most {_LONGEST:,}"
        )
    found: list[str] = []
    pending = [spelling]
    while pending:
        text = pending.pop()
        choice = _CHOICE.search(text)
        if choice is None:
            found.append(text)
        else:
            before, after = text[: choice.start()], text[choice.end() :]
            pending += [f"{before}{each}{after}" for each in reversed(choice[1].split(","))]
        if len(found) > _MOST:
            raise InputError(
                f"{spelling} expands to more than {_MOST} profiles", "write fewer choices in braces"
            )
    return found


def expand_all(spellings: Iterable[str]) -> list[str]:
    """Return every combination of all spellings. InputError if there are too many in all."""
    found: list[str] = []
    for spelling in spellings:
        found += expand(spelling)
        if len(found) > _MOST:
            raise InputError(
                f"the profiles expand to more than {_MOST}", "write fewer choices in braces"
            )
    return found
