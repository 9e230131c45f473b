"""`fscost plot`: one chart of a run as a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from fscost import files
from fscost.cli import shared
from fscost.cli.declare import option, with_fields
from fscost.cli.usage import some_path
from fscost.errors import InputError, did_you_mean

Form = Literal["png", "svg", "html"]


@dataclass(frozen=True)
class Options:
    """Options of `fscost plot`."""

    run: shared.Run
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", parser=some_path, metavar="FILE", help="Write the picture to this file."
        ),
    ]
    chart: str = option(
        default="causes", metavar="NAME", help="Chart to draw; a wrong name lists all."
    )
    profile: str | None = option(
        metavar="NAME",
        help="Profile to show, if the chart is about a single profile. (default: the first)",
    )
    format: Form | None = option(
        "--format", help="Picture format. (default: from the file's extension)", show_default=False
    )
    ssd: shared.ModelledDevice = None
    array: shared.ModelledArray = None
    trust: shared.TrustRun = False


@with_fields
def plot(options: Options) -> None:
    """Draw one chart of a run as PNG, SVG or HTML."""
    run, out, chart, profile = options.run, options.out, options.chart, options.profile
    form = options.format or out.suffix.removeprefix(".").lower()
    if form not in get_args(Form):
        raise InputError(
            f"{out} has no known picture format",
            "use the extension .png, .svg or .html, or add --format",
        )
    files.check_output(out)
    from fscost import wear
    from fscost.results import salvaged

    device, shape = wear.of_options(options.ssd, options.array)
    results, damage = salvaged(run, trust=options.trust)
    from fscost.report.figures import figures
    from fscost.report.picture import drawn
    from fscost.view import repeat
    from fscost.view.page import page

    found = list(figures(page(results, damage, device, shape)))
    named = [figure for figure in found if figure.name == chart]
    if not named:
        names = list(dict.fromkeys(figure.name for figure in found))
        remedy = did_you_mean(chart, names) or f"charts: {', '.join(names) or 'none'}"
        raise InputError(f"{run} has no chart {chart!r}", remedy)
    chosen = [figure for figure in named if profile in (None, figure.profile)]
    if not chosen:
        of = [figure.profile for figure in named if figure.profile]
        remedy = f"profiles: {', '.join(of)}" if of else "leave --profile out"
        raise InputError(f"{run} has no chart {chart!r} of profile {profile!r}", remedy)
    with files.replacing(out) as file:
        file.write(drawn(chosen[0].chart, form, repeat.provenance(results)))
