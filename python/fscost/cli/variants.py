"""Several commands in one call: `--run NAME=CMD`, parameter lists `-L mode delete,wal`, ranges
`-P size 1..10:2`, and choices of a workload's option `--set journal={wal,delete}`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

from fscost import profile
from fscost.errors import InputError
from fscost.profile import Expansion
from fscost.request.model import Request

_MOST = 64
_NUMBER = r"(-?\d{1,18}(?:\.\d{1,9})?)"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}(?::{_NUMBER})?", re.ASCII)


def variants(
    asked: Request, runs: Sequence[str], lists: Sequence[str], ranges: Sequence[str] = ()
) -> dict[str, Request]:
    """Return the request of each run, by name. If nothing varies, the only run has no name."""
    choices = [*map(_listed, lists), *map(_range, ranges)]
    return combined(_commands(asked, runs), choices)


def combined(
    commands: Mapping[str, Request], choices: Sequence[Sequence[tuple[str, str]]]
) -> dict[str, Request]:
    """Return a request for each command, each choice of its options, and each combination of the
    lists' values. An item of a list is its name and a value."""
    settings = {
        label: [profile.expand(text) for text in request.set] for label, request in commands.items()
    }
    count = prod(map(len, choices)) * sum(prod(map(len, each)) for each in settings.values())
    if count > _MOST:
        raise InputError(
            f"the lists combine to {count} runs", f"shorten them to at most {_MOST} runs"
        )
    found: dict[str, Request] = {}
    for label, request in commands.items():
        for chosen in product(*settings[label]):
            own = replace(request, set=tuple(each.spelling for each in chosen))
            for values in product(*choices):
                name = ", ".join(filter(None, [label, *_named(chosen, values)]))
                found[name] = _filled(own, values, name)
    return found


def _named(settings: Sequence[Expansion], values: Sequence[tuple[str, str]]) -> list[str]:
    chosen = [level for each in settings for _, level in each.levels]
    return [*chosen, *(f"{key}={value}" for key, value in values)]


def _commands(asked: Request, runs: Sequence[str]) -> dict[str, Request]:
    if not runs:
        return {"": asked}
    if asked.command or asked.step or asked.workload is not None:
        raise InputError(
            "--run already gives the commands", "drop the command after --, --step or --workload"
        )
    found = {}
    for text in runs:
        name, equals, command = text.partition("=")
        if not name.strip() or not equals or not command.strip():
            raise InputError(f"--run {text!r} is not NAME=COMMAND", "write --run NAME='COMMAND'")
        if name in found:
            raise InputError(f"--run {text!r} repeats a name", "give each run a name of its own")
        found[name] = replace(asked, command=(command,))
    return found


def _listed(text: str) -> list[tuple[str, str]]:
    """Parse `mode=delete,wal`, the form into which `cli.help` joins `-L mode delete,wal`."""
    name, _, values = text.partition("=")
    found = [each.strip() for each in values.split(",")]
    if not name.isidentifier() or "" in found or len(set(found)) < len(found):
        raise InputError(
            f"-L {name} {values} lists no values",
            "write -L mode delete,wal, and {mode} in the command",
        )
    return [(name, each) for each in found]


def _range(text: str) -> list[tuple[str, str]]:
    """Parse `size=1..10:2`. Decimals stay exact: 0.1..0.3:0.1 has three values."""
    name, _, values = text.partition("=")
    found = _RANGE.fullmatch(values)
    if not name.isidentifier() or found is None:
        raise InputError(
            f"-P {name} {values} is not a range", "write -P size 1..10:2, and {size} in the command"
        )
    begin, end, step = (Decimal(each or 1) for each in found.groups())
    count = (end - begin) // step + 1 if step > 0 else Decimal(0)
    if not 1 <= count <= _MOST:
        raise InputError(
            f"-P {name} {values} has {max(int(count), 0):,} values",
            f"give 1 to {_MOST}: FROM..TO:STEP, with TO above FROM and STEP above 0",
        )
    return [(name, f"{begin + step * number}") for number in range(int(count))]


def _filled(request: Request, chosen: Sequence[tuple[str, str]], name: str) -> Request:
    """Replace each `{key}` in all options. Refuse unused keys, which would make identical runs."""

    used = set()

    def fill(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(fill, value))
        if isinstance(value, str):
            for key, text in chosen:
                if f"{{{key}}}" in value:
                    used.add(key)
                    value = value.replace(f"{{{key}}}", text)
        return value

    filled = {field.name: fill(getattr(request, field.name)) for field in fields(request)}
    for key, _ in chosen:
        if key not in used:
            raise InputError(
                f"-L {key}: no option contains {{{key}}}",
                f"write {{{key}}} where its values belong, or drop -L {key}",
            )
    return replace(request, **{**filled, "name": _title(request.name, name)})


def _title(given: str | None, name: str) -> str | None:
    """Return the title of one run among several, or the given title of the only run."""
    return f"{given}: {name}" if given and name else (name or given)
