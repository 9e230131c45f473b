"""Brace expansion of profile spellings, as in a shell: `ext4 -o commit={5,30}`. Each brace is a
*factor*, and each of its choices a *level*; all combinations are a full factorial design."""

import re
from collections.abc import Iterable
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
_NO_FLAG = "\1"
"""Stands for an empty choice beside flags, as in `-j {,-b 1024}`: the flag before it has no value
here, and stays."""
_NO_VALUE = re.compile(rf"(?<=[\s,])[^\s,=-][^\s,=]*={_NOTHING}(?=[,\s]|$)")
"""`-o data={,journal}`: the option is left out, not made empty."""
_EMPTY = (
    re.compile(rf",{_NOTHING}(?=[,\s]|$)"),  # an item of a list, and the comma before it
    re.compile(rf"(?<=[\s=]){_NOTHING},"),  # the first item of a list
    re.compile(rf"(?:^|(?<=\s))-\S*\s+{_NOTHING}(?=\s|$)"),  # `-O {,^has_journal}`: also the flag
    re.compile(rf"(?:^|(?<=\s))-(?:\w|\S*=){_NOTHING}(?=\s|$)"),  # `-O{,^has_journal}`
    re.compile(f"[{_NOTHING}{_NO_FLAG}]"),
)


@dataclass(frozen=True)
class Expansion:
    """A spelling without braces. `levels`: factor and level of each brace of `sweep`, the spelling
    that it came from, in order, both as a reader would name them."""

    spelling: str
    levels: tuple[tuple[str, str], ...] = ()
    sweep: str = ""


def expand(spelling: str) -> list[Expansion]:
    """Return every combination, with the last brace changing fastest, or only the spelling itself
    if it has no braces to expand. InputError if there are too many."""
    check(spelling)
    found: list[Expansion] = []
    pending = [Expansion(spelling)]
    while pending:
        each = pending.pop()
        if steps := _choices(each):
            pending += reversed(steps)
        else:
            found.append(_finished(each, spelling))
        if len(found) > MOST:
            raise InputError(
                f"{spelling} expands to more than {MOST} profiles", "write fewer choices in braces"
            )
    return found


def check(spelling: str) -> None:
    """Refuse a spelling that would take long to expand, or holds the mark of an empty choice."""
    for mark in (_NOTHING, _NO_FLAG):
        if mark in spelling:
            raise InputError(f"profile: contains {mark!r}", "a profile is one line of text")
    if len(spelling) > _LONGEST:
        raise InputError(
            f"{spelling[:40]}… has {len(spelling):,} characters", f"write at most {_LONGEST:,}"
        )


def factors(spelling: str) -> dict[str, int]:
    """Return the factors of a spelling, and the number of their levels."""
    found: dict[str, int] = {}
    at = Expansion(spelling)
    while steps := _choices(at):
        at = steps[0]
        found[at.levels[-1][0]] = len(steps)
    return found


def combination(spelling: str, numbers: Iterable[int]) -> Expansion:
    """Return the combination that has the level of this number of each factor."""
    found = Expansion(spelling)
    for number in numbers:
        found = _choices(found)[number]
    return _finished(found, spelling)


def _choices(found: Expansion) -> list[Expansion]:
    """Replace the first brace with each of its choices; without a brace, return nothing."""
    choice = _CHOICE.search(found.spelling)
    if choice is None:
        return []
    before, after = found.spelling[: choice.start()], found.spelling[choice.end() :]
    texts = choice[1].split(",")
    factor, names = _named(before, texts, [name for name, _ in found.levels])
    nothing = _NO_FLAG if any(text.startswith("-") for text in texts) else _NOTHING
    return [
        Expansion(f"{before}{text or nothing}{after}", (*found.levels, (factor, name)))
        for text, name in zip(texts, names, strict=True)
    ]


def _finished(found: Expansion, spelling: str) -> Expansion:
    if not found.levels:
        return found
    return Expansion(_without(found.spelling), found.levels, spelling)


def _without(text: str) -> str:
    """Remove empty choices, each with the flag or the comma that belongs to it."""
    if _NOTHING not in text and _NO_FLAG not in text:
        return text  # as it was typed
    text = _NO_VALUE.sub(_NOTHING, text)
    for pattern in _EMPTY:
        text = pattern.sub("", text)
    return " ".join(text.split())


def _named(before: str, choices: list[str], taken: list[str]) -> tuple[str, list[str]]:
    """Name a factor, and its levels: by the option whose values they are, or else by the choices
    themselves."""
    *words, last = re.split(r"\s+", before.lstrip())
    if any(each[:1].isspace() for each in choices):  # `ext4{, -o noatime}`: choices are words
        words, last = [*words, last], ""
    texts = "|".join(each.strip() for each in choices if each)
    stem = last.rpartition(",")[2]
    flag = words[-1] if words and words[-1].startswith("-") else ""
    if not words and not stem:
        factor, prefix = "type", ""
    elif stem and (words or stem.endswith("=") or not taken):
        factor, prefix = stem.rstrip("=") or stem, stem
    elif flag and all(each[:1].isdigit() for each in choices):
        factor, prefix = flag, f"{flag} "
    else:
        factor, prefix = texts, ""
    if factor in taken and flag:
        factor, prefix = f"{flag} {factor}", f"{flag} {prefix}"
    while factor in taken:
        factor += "′"
    is_option = stem.startswith("-") or stem.endswith("=")
    absent = f"without {stem.rstrip('=') if is_option else texts}"
    return factor, [f"{prefix}{each.strip()}" if each else absent for each in choices]
