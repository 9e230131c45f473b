"""Built-in workloads, read from `builtin/*.toml` and checked field by field."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from importlib import resources
from typing import Any

from fscost.errors import InputError
from fscost.workload.options import KINDS, Option, Value
from fscost.workload.recipes import RECIPES

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OPTION_NAME = re.compile(r"[a-z]+(_[a-z]+)*")
SETTLES = ("sync", "remount", "none")
RESERVED = frozenset(
    {"mkfs", "mount", "end", "total"}
)  # names of the cell's own intervals and marks, and of sums


@dataclass(frozen=True)
class StepText:
    """A step whose shell text still contains `@option@` placeholders."""

    name: str
    shell: str
    measured: bool = True
    settle: str = "sync"
    drop_caches: bool = False
    timeout_s: int = 1800


@dataclass(frozen=True, kw_only=True)
class Builtin:
    """One data file. `disk_mib` and `write_mib` apply to the defaults at scale 1, and grow with the
    options that are marked `grows`.

    `write_mib` is the most that ext4, ext4 data=journal, xfs and btrfs wrote in trials, over all
    steps: it protects the host's disk from filling up.
    """

    name: str
    summary: str
    needs_tools: tuple[str, ...] = ()
    only_types: tuple[str, ...] = ()
    takes_source: bool = False
    recipe: str = ""
    recipe_uses: tuple[str, ...] = ()
    disk_mib: int
    write_mib: int
    options: dict[str, Option] = field(default_factory=dict)
    steps: tuple[StepText, ...]


_TOML_TYPES: Mapping[Any, type] = {
    str: str,
    bool: bool,
    int: int,
    Value: object,  # checked by the option itself
    tuple[str, ...]: list,
    tuple[StepText, ...]: list,
    dict[str, Option]: dict,
}
"""Type that a field has in TOML, by its type here."""


def load_builtins() -> dict[str, Builtin]:
    """Load every built-in workload, sorted by name."""
    folder = resources.files("fscost.workload") / "builtin"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        name: read_builtin(name, file.read_text(encoding="utf-8"))
        for file in files
        if (name := file.name.removesuffix(".toml"))
    }


def read_builtin(name: str, text: str) -> Builtin:
    """Read one data file; an InputError names the file and the field."""
    file = f"{name}.toml"
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{file}: {error}", "see the other built-in workloads for the syntax"
        ) from None
    _require(bool(_NAME.fullmatch(name)), file, "a name is lower-case words joined by '-'")
    values = _values(file, f"{file}: ", table, fields(Builtin)[1:])
    _require("\n" not in values["summary"], f"{file}: summary", "must be one line")
    options = {key: _read_option(file, key, spec) for key, spec in table.get("options", {}).items()}
    steps = tuple(
        _read_step(f"{file}: steps[{i}]", spec, options) for i, spec in enumerate(table["steps"])
    )
    names = {step.name for step in steps}
    builtin = Builtin(**{**values, "name": name, "options": options, "steps": steps})
    _require(len(names) == len(steps), f"{file}: steps", "two steps have the same name")
    _require(any(step.measured for step in steps), f"{file}: steps", "none is measured")
    is_recipe = builtin.recipe in ("", *RECIPES)
    _require(is_recipe, f"{file}: recipe", f"no such recipe; there are {', '.join(RECIPES)}")
    is_declared = options.keys() >= {*builtin.recipe_uses}
    _require(is_declared, f"{file}: recipe_uses", "names an undeclared option")
    return builtin


def _read_option(file: str, name: str, spec: Any) -> Option:
    place = f"{file}: options.{name}"
    _require(
        bool(_OPTION_NAME.fullmatch(name)) and name != "seed",
        place,
        "a name is lower-case words joined by '_', not 'seed'",
    )
    option = Option(name, **_values(place, f"{place}.", spec, fields(Option)[1:]))
    _require(option.kind in KINDS, f"{place}.kind", f"must be one of {', '.join(KINDS)}")
    try:
        is_read = option.read(option.default) == option.default
    except InputError as error:
        raise InputError(f"{place}.default: {error.what}") from None
    _require(is_read, f"{place}.default", "must be the value itself, such as 4096 instead of '4k'")
    return option


def _read_step(place: str, spec: Any, options: dict[str, Option]) -> StepText:
    step = StepText(**_values(place, f"{place}.", spec, fields(StepText)))
    can_name = _NAME.fullmatch(step.name) and step.name not in RESERVED
    _require(bool(can_name), f"{place}.name", "cannot name a phase")
    _require(step.settle in SETTLES, f"{place}.settle", f"must be one of {', '.join(SETTLES)}")
    unknown = sorted({*re.findall(r"@(\w+)@", step.shell)} - {*options, "seed"})
    _require(not unknown, f"{place}.shell", f"uses undeclared options: {', '.join(unknown)}")
    return replace(step, shell=step.shell.strip())


def _values(place: str, prefix: str, table: Any, known: Sequence[Field[Any]]) -> dict[str, Any]:
    """Check a table against the fields of a dataclass, and return their values."""
    _require(isinstance(table, dict), place, "must be a table")
    types = {each.name: _TOML_TYPES[each.type] for each in known}
    for key, value in table.items():
        _require(key in types, prefix + key, f"no such field; there are {', '.join(types)}")
        is_flag = types[key] is int and isinstance(value, bool)
        is_type = isinstance(value, types[key]) and not is_flag
        _require(is_type, prefix + key, f"must be a {types[key].__name__}")
    for each in known:
        is_optional = each.default is not MISSING or each.default_factory is not MISSING
        is_given = table.get(each.name) not in (None, "", [])
        _require(is_optional or is_given, prefix + each.name, "is missing")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise InputError(f"{place}: {what}")
