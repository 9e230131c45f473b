"""Verdicts after power cuts that were made beside a run. Most runs have none, and import nothing
for them."""

import shlex

from fscost.errors import InputError
from fscost.results import POWER_CUTS, RunResults


def verdicts(results: RunResults) -> tuple[dict[str, str], str]:
    """Return the verdict on each profile of a run with `--crash`, and a line that explains them.
    The folder is untrusted: what cannot be read counts as not there."""
    folder = results.folder / POWER_CUTS
    if not folder.exists():
        return {}, ""
    from fscost.crash import states

    try:
        found = states.load(folder)
    except InputError:
        return {}, ""
    examined = f"{min(found.examined.values(), default=0):,}"
    line = (
        f"Power cut: the worst of at least {examined} states of another workload, which fsyncs"
        f" {found.workload} (device {found.device}); fscost crash {shlex.quote(str(folder))} tells"
        " more."
    )
    return found.verdicts, line
