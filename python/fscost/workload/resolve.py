"""Conversion of a name or a command to steps."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from fscost.errors import InputError
from fscost.workload.load import RESERVED, Builtin, StepText, is_phase_name
from fscost.workload.model import Recipe, Step, Workload
from fscost.workload.options import Value, added_mib, growth, read_options
from fscost.workload.source import check_source, source_bytes

_MIB = 1 << 20
_ROOM_BYTES = 64 * _MIB  # for the file system's own structures
_LARGEST_SCALE = 1e6
_MOST_WARMUPS = 100
_LONGEST_NAME = 200
"""Maximum length of a command in titles and tables; the step holds the whole command."""

_UNMEASURED = re.compile(r"(prepare|conclude)(-[0-9]+)?")

# Sorting, messages and dates must not depend on the user's settings.
_ENV = (("LC_ALL", "C"), ("TZ", "UTC"))


def from_builtin(
    builtin: Builtin,
    scale: float | None,
    seed: int,
    source: Path | None,
    given: Mapping[str, Value],
) -> Workload:
    """Build the built-in workload at this scale with these options."""
    scale = 1.0 if scale is None else scale
    if not 0 < scale <= _LARGEST_SCALE:
        what = (
            f"is above {_LARGEST_SCALE:,.0f}"
            if scale > _LARGEST_SCALE
            else "is not a number above 0"
        )
        raise InputError(
            f"--scale {scale:g} {what}",
            "1 is the default size (a few seconds); 0.1 is a tenth of it, 10 is ten times it",
        )
    values = read_options(builtin.name, builtin.options, given, scale)
    recipe = _recipe(builtin, values, source)
    factor = growth(builtin.options, values)
    disk_mib, write_mib = added_mib(builtin.options, values)
    disk_bytes = _ROOM_BYTES + math.ceil((builtin.disk_mib * factor + disk_mib) * _MIB)
    write_bytes = math.ceil((builtin.write_mib * factor + write_mib) * _MIB)
    if source is not None:
        write_bytes = source_bytes(source)
        disk_bytes = max(disk_bytes, 2 * write_bytes)
    return Workload(
        name=builtin.name,
        steps=tuple(_step(step, {**values, "seed": seed}) for step in builtin.steps),
        summary=builtin.summary,
        scale=scale,
        seed=seed,
        recipe=recipe,
        options=tuple(values.items()),
        disk_bytes=disk_bytes,
        write_bytes_estimate=write_bytes,
        needs_tools=builtin.needs_tools,
        only_types=builtin.only_types,
    )


def from_command(
    words: str | Sequence[str],
    prepare: Sequence[str],
    conclude: Sequence[str],
    env: Mapping[str, str],
    *,
    ignore_failure: bool,
    warmup: int,
) -> Workload:
    """Build a workload from the user's command: one phase `run`, between unmeasured steps, of which
    the last `warmup` before it are the command itself.

    If steps follow it, `run` ends with a remount, so that its late writes are charged to `run`
    itself.
    """
    shell = words if isinstance(words, str) else shlex.join(words)
    if not shell.strip():
        raise InputError(
            "the command is empty", "write it after --, as in: fscost compare -- make -j2"
        )
    _check_commands([shell], prepare, conclude)
    if not 0 <= warmup <= _MOST_WARMUPS:
        raise InputError(
            f"--warmup {warmup} is out of range", f"give a number from 0 to {_MOST_WARMUPS}"
        )
    variables = tuple(env.items())
    name = shell if len(shell) <= _LONGEST_NAME else f"{shell[:_LONGEST_NAME]}…"
    text = _tolerant(shell) if ignore_failure else shell
    run = Step("run", text, settle="remount" if conclude else "sync", env=variables)
    steps = (
        *_unmeasured("prepare", prepare, variables),
        *_unmeasured("warmup", [text] * warmup, variables),
        run,
        *_unmeasured("conclude", conclude, variables),
    )
    return Workload(name=name, steps=steps, summary="a command of your own", disk_bytes=0)


def from_steps(
    commands: Mapping[str, str],
    prepare: Sequence[str],
    conclude: Sequence[str],
    env: Mapping[str, str],
    *,
    ignore_failure: bool,
) -> Workload:
    """Build a workload from several of the user's commands, by the names of their phases: they run
    in this order, and each is measured. If unmeasured steps follow, the last ends with a remount.
    """
    for name, text in commands.items():
        if not is_phase_name(name) or _UNMEASURED.fullmatch(name):
            raise InputError(
                f"--step {name!r} cannot name a phase",
                "use lower-case words joined by '-', but not prepare, conclude, or a name of fscost"
                f" ({', '.join(sorted(RESERVED))})",
            )
        if not text.strip():
            raise InputError(f"--step {name}= is empty", f"write --step {name}='COMMAND'")
    _check_commands(list(commands.values()), prepare, conclude)
    variables = tuple(env.items())
    last = list(commands)[-1]
    steps = (
        *_unmeasured("prepare", prepare, variables),
        *(
            Step(
                name,
                _tolerant(text) if ignore_failure else text,
                settle="remount" if conclude and name == last else "sync",
                env=variables,
            )
            for name, text in commands.items()
        ),
        *_unmeasured("conclude", conclude, variables),
    )
    names = ", ".join(commands)
    title = names if len(names) <= _LONGEST_NAME else f"{names[:_LONGEST_NAME]}…"
    return Workload(name=title, steps=steps, summary="commands of your own", disk_bytes=0)


def _check_commands(
    commands: Sequence[str], prepare: Sequence[str], conclude: Sequence[str]
) -> None:
    for option, texts in (("--prepare", prepare), ("--conclude", conclude)):
        if not all(text.strip() for text in texts):
            raise InputError(f"{option} '' is empty", "give a shell command, or leave it out")
    if any("\0" in text for text in (*commands, *prepare, *conclude)):
        raise InputError(
            "the command contains a NUL character", "remove it: commands cannot contain NUL"
        )


def _tolerant(shell: str) -> str:
    """Return the command in a subshell, so that its `exit` ends only the command."""
    return f"( {shell}\n) || true"


def _unmeasured(
    name: str, texts: Sequence[str], variables: tuple[tuple[str, str], ...]
) -> list[Step]:
    names = [name] if len(texts) == 1 else [f"{name}-{i + 1}" for i in range(len(texts))]
    return [
        Step(each, text, measured=False, env=variables)
        for each, text in zip(names, texts, strict=True)
    ]


def _recipe(builtin: Builtin, values: Mapping[str, Value], source: Path | None) -> Recipe | None:
    if source is not None:
        if not builtin.takes_source:
            raise InputError(
                f"workload '{builtin.name}' takes no --source",
                "drop --source, or use --workload source-tree",
            )
        check_source(source)
        return Recipe("repository", source=source)
    if not builtin.recipe:
        return None
    return Recipe(builtin.recipe, tuple((name, values[name]) for name in builtin.recipe_uses))


def _step(step: StepText, values: Mapping[str, Value]) -> Step:
    shell = re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), step.shell)
    return Step(
        step.name, shell, step.measured, step.settle, step.drop_caches, step.timeout_s, _ENV
    )
