"""Answers of a run, one sentence each."""

from fscost.results import TOTAL, written
from fscost.stats import Row
from fscost.view.answers import answers
from fscost.view.breakdown import WRITTEN


def row(metric: str, value: float) -> Row:
    return Row("ext4", TOTAL, True, "", metric, "bytes", 1, value, None, None, None)


def test_bytes_of_several_causes_may_be_the_largest_other_cause() -> None:
    """docs/atlas/runs/6.1-guest/small-files: "allocation, 5 %", although 56 % were mixed."""
    rows = [
        row(WRITTEN, 100),
        row(written.BY_CAUSE["data"], 39),
        row(written.BY_CAUSE["allocation"], 5),
        row(written.MIXED, 56),
    ]
    assert answers("Headline.", [], rows, "ext4")[1] == (
        "ext4: 39 % is the program's data; the largest other cause is “mixed” (written for several"
        " reasons at once), 56 %."
    )
    assert "“allocation” (" in answers("Headline.", [], rows[:3], "ext4")[1]
