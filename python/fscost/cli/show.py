"""`fscost show`: the tables of a finished run, again or in another format. Its help imports nothing
but its options."""

from dataclasses import dataclass

from fscost.cli import shared
from fscost.cli.declare import option, with_fields


@dataclass(frozen=True)
class Options:
    """Options of `fscost show`."""

    run: shared.Run
    json: bool = option(
        "--json", default=False, help="One JSON object on standard output, in place of the table."
    )
    csv: str | None = option(metavar="FILE", help="The rows as CSV; - for standard output.")
    markdown: str | None = option(
        metavar="FILE", help="The tables as Markdown; - for standard output."
    )
    trust: shared.TrustRun = False
    ssd: str | None = option(
        metavar="MODEL|FILE.toml",
        help="Add NAND bytes and the lifetime of this device, from the recordings kept.",
    )
    by_disk: bool = option(
        "--by-disk", default=False, help="Add a row for each disk to every table and export."
    )
    wide: bool = option("--wide", default=False, help="Add intervals, verdicts and more columns.")
    brief: bool = option("--brief", default=False, help="Print the answer alone.")
    metric: str | None = option(
        metavar="NAME", help="Metric to sort and compare by. (default: the run's metric)"
    )
    pareto: str | None = option(
        metavar="METRIC",
        help=(
            "Also list the profiles that no other one improves on in --metric and this metric, or"
            " 'safety'."
        ),
    )
    per: str | None = option(
        metavar="N:WORD",
        help="Number and name of the workload's operations (500:tx), for bytes per operation.",
    )
    baseline: str | None = option(
        metavar="PROFILE",
        help="Profile that the others are compared with. (default: the run's baseline)",
    )


@with_fields
def show(options: Options) -> None:
    """Print the tables of a finished run again, in any format."""
    from fscost.cli.lines import say
    from fscost.cli.output.emit import Outputs
    from fscost.results import load
    from fscost.view.per import parse_per
    from fscost.view.run import Choice

    choice = Choice(
        options.metric or "",
        options.baseline or "",
        options.by_disk,
        options.wide,
        None if options.per is None else parse_per(options.per),
        options.pareto or "",
    )
    outputs = Outputs(options.json, options.csv, options.markdown, choice, is_brief=options.brief)
    outputs.check()
    results = load(options.run, trust=options.trust)
    notes: list[str] = []
    if options.ssd is not None:
        from fscost import wear

        device = wear.find(options.ssd)
        notes = wear.unreplayed(results)
        results = wear.replayed(results, device)
    outputs.emit(results)
    for note in notes:
        say(note)
