"""`fscost schema`: the JSON Schema of what fscost reads and prints."""

import sys
from typing import Annotated

import typer

from fscost.cli.lines import print_lines
from fscost.errors import InputError, did_you_mean
from fscost.report import document


def schema(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="Document to print the schema of; omit it for a list."),
    ] = None,
) -> None:
    """Print the JSON Schema of suite files, or of a command's --json output.

    A document names its schema in the field `schema`; a suite file has `version` instead.

    fscost schema suite >fscost-suite.json
    """
    if kind is None:
        print_lines([(each, _what(each)) for each in document.VERSIONS])
        return
    if kind not in document.VERSIONS:
        raise InputError(
            f"there is no schema {kind!r}",
            did_you_mean(kind, document.VERSIONS) or f"kinds: {', '.join(document.VERSIONS)}",
        )
    sys.stdout.write(document.schema(kind))


def _what(kind: str) -> str:
    import json

    return str(json.loads(document.schema(kind)).get("description", "")).partition("\n")[0]
