"""Workloads as steps, from built-in ones or commands, and their input files, prepared on the
host."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fscost.errors import InputError, did_you_mean
from fscost.workload import inputs
from fscost.workload.ageing import aged, churned
from fscost.workload.fill import filled
from fscost.workload.load import Builtin, load_builtins
from fscost.workload.model import Recipe, Step, Workload
from fscost.workload.options import Option
from fscost.workload.resolve import from_builtin, from_command, from_steps

__all__ = [
    "Builtin",
    "Option",
    "Recipe",
    "Step",
    "Workload",
    "aged",
    "catalogue",
    "churned",
    "command",
    "filled",
    "inputs",
    "resolve",
    "steps",
]


def catalogue() -> list[Builtin]:
    """Return every built-in workload, with its options."""
    return list(load_builtins().values())


def resolve(
    name: str,
    *,
    scale: float | None = None,
    seed: int = 0,
    source: Path | None = None,
    options: Mapping[str, str | int] | None = None,
) -> Workload:
    """Return the built-in workload of this name. `options` hold text from the command line or
    numbers from a study."""
    builtins = load_builtins()
    if name not in builtins:
        remedy = (
            did_you_mean(name, builtins)
            or f"workloads: {', '.join(builtins)}; a command goes after --"
        )
        raise InputError(
            f"no workload is called '{name}'", f"{remedy} (`fscost workloads` lists all)"
        )
    return from_builtin(builtins[name], scale, seed, source, options or {})


def steps(
    commands: Mapping[str, str],
    *,
    prepare: Sequence[str] = (),
    conclude: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    ignore_failure: bool = False,
) -> Workload:
    """Build a workload from several shell commands, each of which is a measured phase of its own,
    by name and in this order."""
    return from_steps(commands, prepare, conclude, env or {}, ignore_failure=ignore_failure)


def command(
    argv_or_shell: str | Sequence[str],
    *,
    prepare: Sequence[str] = (),
    conclude: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    ignore_failure: bool = False,
    warmup: int = 0,
) -> Workload:
    """Build a workload from the user's command: a list of words runs exactly as given, a string
    runs in the shell."""
    return from_command(
        argv_or_shell, prepare, conclude, env or {}, ignore_failure=ignore_failure, warmup=warmup
    )
