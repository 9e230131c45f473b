"""Flags of one mkfs: splitting, checks for flags that no profile may use, and access to their
values."""

import getopt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fscost.errors import InputError

DISK_PLACEHOLDER = re.compile(r"\{disk\.([a-z][a-z0-9]*)\}")
Flag = tuple[str, str]  # ("-O", "^has_journal"); ("-K", "") for a flag without a value


@dataclass(frozen=True)
class Grammar:
    """Flags of a mkfs in getopt's notation, and those that a profile may not use.

    `device_keys` lists the sub-options that name a device (`-J device=`), and `device_flags` the
    flags that do (`-j DEVICE`, also a comma list). A profile may only set them to one of the cell's
    own disks.
    """

    program: str
    short: str
    long: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    device_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    device_flags: frozenset[str] = frozenset()


def split_flags(grammar: Grammar, words: Sequence[str]) -> tuple[list[Flag], list[str]]:
    """Return the mkfs flags and the values of every `-o`. In a profile, `-o` always means mount
    options, even for mke2fs, which has an `-o` of its own."""
    short = grammar.short.replace("o:", "") + "o:"
    try:
        pairs, rest = getopt.gnu_getopt(list(words), short, list(grammar.long))
    except getopt.GetoptError as error:
        raise InputError(
            f"flags: {error.msg} (in '{' '.join(words)}')",
            f"after the type, write flags as in {grammar.program}'s manual page, then -o with mount"
            " options",
        ) from None
    if rest:
        raise InputError(
            f"flags: unexpected word '{rest[0]}'",
            f"write a mount option as -o {rest[0]}, and name no device: fscost provides the disks",
        )
    for flag, value in pairs:
        _check(grammar, flag, value)
    return [pair for pair in pairs if pair[0] != "-o"], [
        value for flag, value in pairs if flag == "-o"
    ]


def _check(grammar: Grammar, flag: str, value: str) -> None:
    if not value and _takes_value(grammar, flag):
        raise InputError(
            f"flags: {flag} has an empty value", f"give {flag} a value, or leave it out"
        )
    if flag in grammar.refused:
        raise InputError(f"flags: {flag} cannot be part of a profile", grammar.refused[flag])
    if flag in grammar.device_flags:
        for device in value.split(","):
            check_device_value(f"flags: {flag}", device, " ")
    for key, given in suboptions(value):
        if key in grammar.device_keys.get(flag, frozenset()):
            check_device_value(f"flags: {flag} {key}", given)


def _takes_value(grammar: Grammar, flag: str) -> bool:
    return (
        f"{flag[2:]}=" in grammar.long
        if flag.startswith("--")
        else f"{flag[1:]}:" in grammar.short + "o:"
    )


def check_device_value(where: str, value: str, joint: str = "=") -> None:
    """Refuse a device other than the cell's own disks, because a profile must never reach a real
    device."""
    if not DISK_PLACEHOLDER.fullmatch(value):
        raise InputError(
            f"{where}{joint}{value}: not a disk of this profile",
            f"write {where.split()[-1]}{joint}{{disk.journal}}",
        )


def suboptions(value: str) -> list[tuple[str, str]]:
    """Split `a=1,b` into [("a", "1"), ("b", "")]."""
    return [(key, given) for key, _, given in (item.partition("=") for item in value.split(","))]


def words_of(flags: Iterable[Flag]) -> tuple[str, ...]:
    """Join flags to an argument list."""
    return tuple(word for flag, value in flags for word in ((flag, value) if value else (flag,)))


def values_of(flags: Iterable[Flag], *names: str) -> list[str]:
    """Return the values of a flag under any of its names, in order."""
    return [value for flag, value in flags if flag in names]


def suboption_values(flags: Iterable[Flag], name: str, key: str) -> list[str]:
    """Return the values of the sub-option `key=…` or bare `key` of the flag `name`, in order."""
    return [
        value
        for given in values_of(flags, name)
        for each, value in suboptions(given)
        if each == key
    ]
