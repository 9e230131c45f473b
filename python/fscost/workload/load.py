"""Built-in workloads, read from `builtin/*.toml` and checked field by field."""

import re
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field

from fscost import typed
from fscost.errors import InputError
from fscost.workload.options import Option
from fscost.workload.recipes import RECIPES

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OPTION_NAME = re.compile(r"[a-z]+(_[a-z]+)*")
RESERVED = frozenset(
    {"mkfs", "mount", "end", "total"}
)  # names of the cell's own intervals and marks, and of sums


@dataclass(frozen=True)
class StepText(typed.ClosedTable):
    """A step whose shell text still contains `@option@` placeholders."""

    name: typed.Text
    shell: typed.Text
    measured: bool = True
    settle: Literal["sync", "remount", "none"] = "sync"
    drop_caches: bool = False
    timeout_s: int = 1800


@dataclass(frozen=True, kw_only=True)
class Builtin(typed.ClosedTable):
    """One data file. `disk_mib` and `write_mib` apply to the defaults at scale 1, and grow with the
    options that are marked `grows`.

    `write_mib` is the most that ext4, ext4 data=journal, xfs and btrfs wrote in trials, over all
    steps: it protects the host's disk from filling up.
    """

    name: str
    summary: typed.Text
    needs_tools: typed.Tuple[str] = ()
    only_types: typed.Tuple[str] = ()
    takes_source: bool = False
    recipe: str = ""
    recipe_uses: typed.Tuple[str] = ()
    disk_mib: int
    write_mib: int
    options: typed.Dict[Option] = field(default_factory=dict)
    steps: Annotated[typed.Tuple[StepText], Field(min_length=1)]


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
    _require("name" not in table, f"{file}: name", "is given by the file's name")
    try:
        builtin = typed.read(Builtin, {**table, "name": name})
    except typed.InvalidError as error:
        raise InputError(f"{file}: {error}") from None
    _require("\n" not in builtin.summary, f"{file}: summary", "must be one line")
    for key, option in builtin.options.items():
        _check_option(f"{file}: options.{key}", key, option)
    for number, step in enumerate(builtin.steps):
        _check_step(f"{file}: steps[{number}]", step, builtin.options)
    steps = tuple(replace(step, shell=step.shell.strip()) for step in builtin.steps)
    names = {step.name for step in steps}
    _require(len(names) == len(steps), f"{file}: steps", "two steps have the same name")
    _require(any(step.measured for step in steps), f"{file}: steps", "none is measured")
    is_recipe = builtin.recipe in ("", *RECIPES)
    _require(is_recipe, f"{file}: recipe", f"no such recipe; there are {', '.join(RECIPES)}")
    is_declared = builtin.options.keys() >= {*builtin.recipe_uses}
    _require(is_declared, f"{file}: recipe_uses", "names an undeclared option")
    return replace(builtin, steps=steps)


def _check_option(place: str, name: str, option: Option) -> None:
    _require(
        bool(_OPTION_NAME.fullmatch(name)) and name != "seed",
        place,
        "a name is lower-case words joined by '_', not 'seed'",
    )
    try:
        is_read = option.read(name, option.default) == option.default
    except InputError as error:
        raise InputError(f"{place}.default: {error.what}") from None
    _require(is_read, f"{place}.default", "must be the value itself, such as 4096 instead of '4k'")


def _check_step(place: str, step: StepText, options: dict[str, Option]) -> None:
    _require(is_phase_name(step.name), f"{place}.name", "cannot name a phase")
    unknown = sorted({*re.findall(r"@(\w+)@", step.shell)} - {*options, "seed"})
    _require(not unknown, f"{place}.shell", f"uses undeclared options: {', '.join(unknown)}")


def is_phase_name(name: str) -> bool:
    """Return whether a step may have this name."""
    return bool(_NAME.fullmatch(name)) and name not in RESERVED


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise InputError(f"{place}: {what}")
