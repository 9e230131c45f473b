"""Brace expansion of profile spellings, as in a shell: `ext4 -o commit={5,30}`. Each brace is a
*factor*, and each of its choices a *level*; all combinations are a full factorial design."""

import re
from dataclasses import dataclass

from fscost.errors import InputError

_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""Braces with a comma; braces without one name a disk, as `{disk.journal}`."""

MOST = 1000
_LONGEST = 4096
"""Maximum number of profiles of a run, and maximum length of a spelling: 26 braces of two choices
in one argument would be 67 million profiles."""

_NOTHING = "\0"
"""Stands for an empty choice until `_without` has removed what belongs to it."""
_EMPTY = (
    re.compile(rf",{_NOTHING}(?=[,\s]|$)"),  # an item of a list, and the comma before it
    re.compile(rf"(?<=[\s=]){_NOTHING},"),  # the first item of a list
    re.compile(rf"(?:^|(?<=\s))-\S*\s+{_NOTHING}(?=\s|$)"),  # `-O {,^has_journal}`: also the flag
    re.compile(rf"(?:^|(?<=\s))-(?:\w|\S*=){_NOTHING}(?=\s|$)"),  # `-O{,^has_journal}`
    re.compile(_NOTHING),
)


@dataclass(frozen=True)
class Expansion:
    """A spelling without braces. `levels`: factor and level of each brace of `sweep`, the spelling
    that it came from, in order, both as a reader would name them."""

    spelling: str
    levels: tuple[tuple[str, str], ...] = ()
    sweep: str = ""


def expand(spelling: str, most: int = MOST) -> list[Expansion]:
    """Return every combination, with the last brace changing fastest, or only the spelling itself
    if it has no braces to expand. InputError if there are more than `most`."""
    if len(spelling) > _LONGEST:
        raise InputError(
            f"{spelling[:40]}… has {len(spelling):,} characters", f"write at most {_LONGEST:,}"
        )
    if _NOTHING in spelling:  # refused by `spelling.split_words`
        return [Expansion(spelling)]
    found: list[Expansion] = []
    pending = [Expansion(spelling)]
    while pending:
        text, levels = pending[-1].spelling, pending.pop().levels
        choice = _CHOICE.search(text)
        if choice is None:
            found.append(Expansion(_without(text), levels, spelling if levels else ""))
        else:
            before, after = text[: choice.start()], text[choice.end() :]
            choices = choice[1].split(",")
            factor, names = _named(before, choices, [name for name, _ in levels])
            pending += [
                Expansion(f"{before}{each or _NOTHING}{after}", (*levels, (factor, name)))
                for each, name in reversed(list(zip(choices, names, strict=True)))
            ]
        if len(found) > most:
            raise InputError(
                f"{spelling} expands to more than {most} profiles", "write fewer choices in braces"
            )
    return found


def _without(text: str) -> str:
    """Remove empty choices, each with the flag or the comma that belongs to it."""
    if _NOTHING not in text:
        return text
    for pattern in _EMPTY:
        text = pattern.sub("", text)
    return " ".join(text.split())


def _named(before: str, choices: list[str], taken: list[str]) -> tuple[str, list[str]]:
    """Name a factor, and its levels: by the option whose values they are, or else by the choices
    themselves."""
    *words, last = re.split(r"\s+", before.lstrip())
    stem = last.rpartition(",")[2]
    flag = words[-1] if words and words[-1].startswith("-") else ""
    if not words and not stem:
        factor, prefix = "type", ""
    elif stem:
        factor, prefix = stem.rstrip("=") or stem, stem
    elif flag and all(each[:1].isdigit() for each in choices):
        factor, prefix = flag, f"{flag} "
    else:
        factor, prefix = "|".join(filter(None, choices)), ""
    if factor in taken and flag:
        factor, prefix = f"{flag} {factor}", f"{flag} {prefix}"
    while factor in taken:
        factor += "′"
    absent = f"without {stem or '|'.join(filter(None, choices))}"
    return factor, [f"{prefix}{each}" if each else absent for each in choices]
