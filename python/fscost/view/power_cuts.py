"""Examinations of power cuts that a run of a study keeps, in words."""

from fscost import study
from fscost.results import RunResults


def power_cuts(results: RunResults) -> str | None:
    """Describe the examinations of power cuts that are kept in the run's folder."""
    found = study.cut.kept(results.folder)
    if not found:
        return None
    how = ", ".join(
        dict.fromkeys(f"workload {each.workload}, device {each.device}" for each in found)
    )
    seeds = ", ".join(str(each.seed) for each in found)
    names = ", ".join(each.name for each in found)
    return f"States after power cuts: {names} (fscost crash; {how}; seeds {seeds})."
