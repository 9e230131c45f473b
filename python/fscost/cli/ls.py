"""`fscost ls`: the runs of a folder, the newest last."""

from fscost.cli import shared
from fscost.cli.lines import print_lines
from fscost.errors import InputError
from fscost.view.runs import listed


def ls(
    folder: shared.Runs = shared.DEFAULT_RUNS,
    trust: shared.TrustRuns = False,
) -> None:
    """List the runs in a folder, each with its main result."""
    found = listed(folder, trust=trust)
    if not found:
        raise InputError(f"{folder} holds no runs", "name the folder that holds runs")
    print_lines([(str(run.folder), run.answer) for run in found])
