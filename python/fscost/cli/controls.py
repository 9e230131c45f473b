"""`fscost crash --controls`: whether the examination finds the faults that are known, and no
others."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from fscost.cli.examine import progress, sources
from fscost.cli.examiners import natively
from fscost.cli.lines import say
from fscost.cli.measure import execute
from fscost.cli.promising import promising
from fscost.request.model import Place
from fscost.request.prepare import prepared

if TYPE_CHECKING:
    from fscost.crash.explore import Limits

_WORKLOAD = "files"
_WRONG = 1
"""Exit status if a control fails."""


def controls(place: Place, limits: "Limits", rounds: int, *, is_json: bool) -> int:
    """Measure the known profiles, examine their states, and print what was found. Return the exit
    status."""
    from fscost.crash.controls import KNOWN
    from fscost.crash.explore import explore
    from fscost.crash.journal import answers
    from fscost.crash.verdict import judged
    from fscost.report import document
    from fscost.report.terminal import print_parts
    from fscost.view.controls import controls_view

    on = list(dict.fromkeys(each.profile for each in KNOWN))
    wanted = promising(on, _WORKLOAD, rounds, limits.seed, ())
    outcome = execute(prepared(wanted, place, say, sys.argv))
    if outcome.interrupted:
        return 130
    examiners = natively(outcome.results.folder)
    by_profile = {each[0].name: each for each in sources(outcome.results, _WORKLOAD)}
    found = []
    for known in KNOWN:
        about, source = by_profile[known.profile]
        answered = answers(examiners(about), known.profile, None)
        own = replace(limits, device=known.device)
        say_done = progress(f"{known.profile}, {known.device}")
        explored = explore(source, own, answered, say_done)
        found.append((known, len(explored.outcomes), judged(explored).counted))
    view = controls_view(found)
    if is_json:
        value = {"run": str(outcome.results.folder), "seed": limits.seed, "rows": list(view.rows)}
        sys.stdout.write(document.text("crash-controls", value))
    else:
        print_parts(view.title, [view.grid, *view.notes], sys.stdout)
    return 0 if all(row["is_right"] for row in view.rows) else _WRONG
