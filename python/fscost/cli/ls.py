"""`fscost ls`: the runs of a folder, the newest last."""

from fscost.cli import shared
from fscost.cli.lines import print_document, print_lines
from fscost.errors import InputError


def ls(
    folder: shared.Runs = shared.DEFAULT_RUNS,
    trust: shared.TrustRuns = False,
    json: shared.Json = False,
) -> None:
    """List the runs in a folder, each with its main result.

    A run also says what changed since the run before of the same name, lab and profiles.
    """
    from fscost.view.runs import listed

    found = listed(folder, trust=trust)
    if not found:
        raise InputError(f"{folder} holds no runs", "name the folder that holds runs")
    if json:
        entries = [
            {
                "folder": str(run.folder),
                "title": run.title,
                "started_utc": run.started_utc,
                "lab": run.lab,
                "profiles": run.profiles,
                "is_readable": run.is_readable,
                "answer": run.answer,
                "since": None
                if run.trend is None
                else {
                    "run": run.trend.before,
                    "ratios": {name: each.ratio for name, each in run.trend.ratios.items()},
                },
            }
            for run in found
        ]
        print_document("runs", {"runs": entries})
        return
    print_lines(
        [
            (str(run.folder), f"{run.answer} {run.trend}" if run.trend else run.answer)
            for run in found
        ]
    )
