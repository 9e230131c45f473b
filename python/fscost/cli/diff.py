"""`fscost diff`: comparison of several runs. Its help imports nothing but its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli import shared
from fscost.cli.declare import option, with_fields
from fscost.cli.usage import run_path
from fscost.request.model import Request


@dataclass(frozen=True)
class Options:
    """Options of `fscost diff`."""

    runs: Annotated[
        list[Path],
        typer.Argument(
            parser=run_path, metavar="RUN RUN…", help="Folders of runs; ratios are to the first."
        ),
    ]
    metric: str = option(
        default=Request.metric, metavar="NAME", help="Metric to compare; times are refused."
    )
    per: str | None = option(
        metavar="N:WORD", help="Number of operations in each run, to show values per operation."
    )
    ssd: str | None = option(
        metavar="MODEL|FILE.toml",
        help="Add NAND bytes and the life of this device, from the recordings kept.",
        show_default=False,
    )
    fail_if: shared.Repeated = option(
        metavar="CONDITION",
        help=(
            "Exit 1 if this is true of the second run: 'device_write_bytes > +5%'; repeatable. Only a"
            " significant change of at least 2 % counts."
        ),
    )
    csv: str | None = option(metavar="FILE", help="The rows as CSV; - for standard output.")
    markdown: str | None = option(
        metavar="FILE",
        help="The changes from the first run to the second as Markdown; - for standard output.",
    )
    junit: str | None = option(
        metavar="FILE",
        help=(
            "The profiles and conditions as JUnit test cases; - for standard output. Without"
            " --fail-if, a regression fails."
        ),
    )
    wide: bool = option("--wide", default=False, help="Add intervals, verdicts and more columns.")
    brief: bool = option("--brief", default=False, help="Print the answer alone.")
    trust: bool = option(
        "--trust", default=False, help="Use folders that another user owns or can write to."
    )
    json: bool = option("--json", default=False, help="One JSON object on standard output.")


@with_fields
def diff(options: Options) -> None:
    """Compare several runs: each profile in each run, and the ratio to the first run."""
    from fscost.cli.differing import differ

    differ(options)
