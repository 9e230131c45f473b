"""Built-in workloads, read from `builtin/*.toml` and checked field by field."""

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fscost.errors import InputError
from fscost.workload.options import KINDS, Option
from fscost.workload.recipes import RECIPES

_FIELDS: dict[str, type] = {
    "summary": str,
    "needs_tools": list,
    "only_types": list,
    "takes_source": bool,
    "recipe": str,
    "recipe_uses": list,
    "disk_mib": int,
    "write_mib": int,
    "options": dict,
    "steps": list,
}
_OPTION_FIELDS: dict[str, type] = {
    "kind": str,
    "default": object,
    "summary": str,
    "scaled": bool,
    "grows": bool,
    "minimum": int,
    "choices": list,
    "disk_mib": int,
    "write_mib": int,
}
_STEP_FIELDS: dict[str, type] = {
    "name": str,
    "shell": str,
    "measured": bool,
    "settle": str,
    "drop_caches": bool,
    "timeout_s": int,
}
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


@dataclass(frozen=True)
class Builtin:
    """One data file. `disk_mib` and `write_mib` apply to the defaults at scale 1, and grow with the
    options that are marked `grows`.

    `write_mib` is the most that ext4, ext4 data=journal, xfs and btrfs wrote in trials, over all
    steps: it protects the host's disk from filling up.
    """

    name: str
    summary: str
    steps: tuple[StepText, ...]
    disk_mib: int
    write_mib: int
    options: dict[str, Option]
    needs_tools: tuple[str, ...] = ()
    only_types: tuple[str, ...] = ()
    takes_source: bool = False
    recipe: str = ""
    recipe_uses: tuple[str, ...] = ()


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
    _require(bool(_NAME.fullmatch(name)), file, "", "a name is lower-case words joined by '-'")
    _check_fields(file, "", table, _FIELDS, required=("summary", "steps", "disk_mib", "write_mib"))
    _require("\n" not in table["summary"], file, "summary", "must be one line")
    options = {key: _read_option(file, key, spec) for key, spec in table.get("options", {}).items()}
    steps = tuple(
        _read_step(file, f"steps[{i}]", spec, options) for i, spec in enumerate(table["steps"])
    )
    names = [step.name for step in steps]
    _require(len(set(names)) == len(names), file, "steps", "two steps have the same name")
    _require(any(step.measured for step in steps), file, "steps", "none is measured")
    _require(
        table.get("recipe", "") in ("", *RECIPES),
        file,
        "recipe",
        f"no such recipe; there are {', '.join(RECIPES)}",
    )
    uses = tuple(table.get("recipe_uses", ()))
    _require(set(uses) <= set(options), file, "recipe_uses", "names an undeclared option")
    return Builtin(
        name=name,
        summary=table["summary"],
        steps=steps,
        disk_mib=table["disk_mib"],
        write_mib=table["write_mib"],
        options=options,
        needs_tools=tuple(table.get("needs_tools", ())),
        only_types=tuple(table.get("only_types", ())),
        takes_source=table.get("takes_source", False),
        recipe=table.get("recipe", ""),
        recipe_uses=uses,
    )


def _read_option(file: str, name: str, spec: Any) -> Option:
    where = f"options.{name}"
    _require(
        bool(_OPTION_NAME.fullmatch(name)) and name != "seed",
        file,
        where,
        "a name is lower-case words joined by '_', not 'seed'",
    )
    _require(isinstance(spec, dict), file, where, "must be a table")
    _check_fields(file, where, spec, _OPTION_FIELDS, required=("kind", "default", "summary"))
    _require(spec["kind"] in KINDS, file, f"{where}.kind", f"must be one of {', '.join(KINDS)}")
    option = Option(
        name,
        kind=spec["kind"],
        default=spec["default"],
        summary=spec["summary"],
        scaled=spec.get("scaled", False),
        grows=spec.get("grows", False),
        minimum=spec.get("minimum", 1),
        choices=tuple(spec.get("choices", ())),
        disk_mib=spec.get("disk_mib", 0),
        write_mib=spec.get("write_mib", 0),
    )
    try:
        _require(
            option.read(option.default) == option.default,
            file,
            f"{where}.default",
            "must be the value itself, such as 4096 instead of '4k'",
        )
    except InputError as error:
        raise InputError(f"{file}: {where}.default: {error.what}") from None
    return option


def _read_step(file: str, where: str, spec: Any, options: dict[str, Option]) -> StepText:
    _require(isinstance(spec, dict), file, where, "must be a table")
    _check_fields(file, where, spec, _STEP_FIELDS, required=("name", "shell"))
    _require(
        bool(_NAME.fullmatch(spec["name"])) and spec["name"] not in RESERVED,
        file,
        f"{where}.name",
        "cannot name a phase",
    )
    _require(
        spec.get("settle", "sync") in SETTLES,
        file,
        f"{where}.settle",
        f"must be one of {', '.join(SETTLES)}",
    )
    unknown = set(re.findall(r"@(\w+)@", spec["shell"])) - set(options) - {"seed"}
    _require(
        not unknown,
        file,
        f"{where}.shell",
        f"uses undeclared options: {', '.join(sorted(unknown))}",
    )
    return StepText(**{**spec, "shell": spec["shell"].strip()})


def _check_fields(
    file: str, where: str, table: dict[str, Any], fields: dict[str, type], required: tuple[str, ...]
) -> None:
    for key, value in table.items():
        name = f"{where}.{key}" if where else key
        _require(key in fields, file, name, f"no such field; there are {', '.join(fields)}")
        boolean_for_int = fields[key] is int and isinstance(value, bool)
        _require(
            isinstance(value, fields[key]) and not boolean_for_int,
            file,
            name,
            f"must be a {fields[key].__name__}",
        )
    for key in required:
        _require(
            table.get(key) not in (None, "", []),
            file,
            f"{where}.{key}" if where else key,
            "is missing",
        )


def _require(holds: bool, file: str, field: str, what: str) -> None:
    if not holds:
        raise InputError(f"{file}: {field + ': ' if field else ''}{what}")
