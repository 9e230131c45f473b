"""`fscost workloads`: list of names that --workload accepts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from fscost import workload
from fscost.cli import shared
from fscost.cli.completion import workloads as completed
from fscost.cli.lines import print_document, print_lines, wrapped
from fscost.view.grid import plain

_MIB = 1 << 20


def workloads(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show one workload: its options and steps.",
            autocompletion=completed,
            show_default=False,
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """List the built-in workloads, or show the options and steps of one."""
    if json:
        names = [each.name for each in workload.catalogue()] if name is None else [name]
        found = [_entry(workload.resolve(each)) for each in names]
        print_document("workloads", {"workloads": found})
    elif name is None:
        _list()
    else:
        _describe(workload.resolve(name))


def _list() -> None:
    found = workload.catalogue()
    width = max(len(each.name) for each in found)
    entries = []
    for each in found:
        size_bytes = workload.resolve(each.name).write_bytes_estimate or 0
        size = f"{size_bytes // _MIB} MiB"
        entries.append((f"{each.name:{width}}  {size:>8}", each.summary))
    print_lines(entries)
    print("\nOptions and steps of one: `fscost workloads NAME`")
    print(
        "Any other workload: a command of yours, as in\n`fscost compare -- 'tar xf {here}/src.tar"
        " && make -C src'`"
    )


def _entry(found: workload.Workload) -> dict[str, Any]:
    values = dict(found.options)
    return {
        "name": found.name,
        "summary": found.summary,
        "write_bytes_estimate": found.write_bytes_estimate or 0,
        "disk_bytes": found.disk_bytes,
        "programs": list(found.needs_tools),
        "types": list(found.only_types),
        "options": {
            name: {
                "value": values[name],
                "summary": option.summary,
                "choices": list(option.choices),
                "scaled": option.scaled,
            }
            for name, option in _declared(found).items()
        },
        "steps": [
            {"name": step.name, "measured": step.measured, "shell": step.shell}
            for step in found.steps
        ],
    }


def _declared(found: workload.Workload) -> Mapping[str, workload.Option]:
    return next(each.options for each in workload.catalogue() if each.name == found.name)


def _describe(found: workload.Workload) -> None:
    declared = _declared(found)
    values = dict(found.options)
    print(wrapped(f"{found.name}: {found.summary}"))
    estimate_bytes = found.write_bytes_estimate or 0
    print(
        f"A cell writes up to {estimate_bytes // _MIB} MiB; "
        f"the disk needs {found.disk_bytes // _MIB} MiB or more"
    )
    if found.needs_tools:
        print(f"Programs: {', '.join(found.needs_tools)}")
    if found.only_types:
        print(f"File systems: {', '.join(found.only_types)}")
    if declared:
        print("\nOptions (--set NAME=VALUE)")
        print_lines(
            [(f"  {name}={values[name]}", _meaning(option)) for name, option in declared.items()]
        )
    print("\nSteps")
    for step in found.steps:
        print("\n".join(_step(step)))


def _meaning(option: workload.Option) -> str:
    choices = ": " + ", ".join(option.choices) if option.choices else ""
    return f"{option.summary}{choices}{'; --scale multiplies it' if option.scaled else ''}"


def _step(step: workload.Step) -> Iterator[str]:
    yield f"  {step.name}{'' if step.measured else ' (not measured)'}"
    for line in step.shell.strip().splitlines():
        yield plain(f"    {line}".rstrip())
