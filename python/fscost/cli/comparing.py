"""`fscost compare`, once its command line is parsed."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import typer

from fscost.cli.lines import say
from fscost.cli.measure import make
from fscost.cli.options import Options
from fscost.cli.output.emit import Outputs
from fscost.cli.variants import variants
from fscost.errors import InputError
from fscost.request.model import AUTO, Place, Request
from fscost.request.request import absolute, resumed, to_spec, with_range
from fscost.results import load
from fscost.view.run import Choice


def compared(context: typer.Context, options: Options) -> int:
    """Measure what the options ask for, print the tables, and return the exit status."""
    choice = Choice(is_by_disk=options.by_disk, is_wide=options.wide)
    outputs = Outputs(options.json, options.csv, options.markdown, choice, is_brief=options.brief)
    outputs.check()
    given = _given(context)
    if (exact := options.repetitions) is not None:
        if {"min_repetitions", "max_repetitions"} & set(given):
            raise InputError(
                "--repetitions sets both bounds", "drop --min-repetitions and --max-repetitions"
            )
        options = replace(options, min_repetitions=exact, max_repetitions=exact)
        given += ["min_repetitions", "max_repetitions"]
    asked = absolute(Request(**_values(options, Request)))
    place = Place(**_values(options, Place))
    runs, lists, ranges = options.runs or (), options.lists or (), options.ranges or ()
    if options.resume is not None and options.out is not None:
        raise InputError("--resume and --out cannot be combined", "drop --out")
    if (resume := options.resume) is not None and not (runs or lists or ranges):
        before = load(resume, trust=options.trust).manifest
        asked = resumed(before.request, asked, given, resume)
        say(f"resuming {resume}: {asked.command_line()}")
        place = replace(place, lab=before.lab if place.lab == AUTO else place.lab)
        found = {"": asked}
    else:
        asked = with_range(asked, given)
        found = {
            name: absolute(each) for name, each in variants(asked, runs, lists, ranges).items()
        }
        if len(found) > 1:
            for each in found.values():  # before the first run, which may take an hour
                to_spec(each, Path(), resume=False, command_line=())
    return make(found, place, outputs)


def _values(options: Options, kind: type[Request | Place]) -> dict[str, Any]:
    """Return the options that are fields of `kind`, by name."""
    found: dict[str, Any] = {}
    for field in fields(kind):
        value = getattr(options, field.name)
        found[field.name] = tuple(value or ()) if isinstance(field.default, tuple) else value
    return found


def _given(context: typer.Context) -> list[str]:
    """Return the names of the options given on the command line."""
    return [
        name
        for name in context.params
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    ]
