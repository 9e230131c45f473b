"""A whole study in guests with all nine file systems, started and then resumed: as small as
possible while still being judged."""

import math
import os
from pathlib import Path

import pytest

from fscost import study
from fscost.lab.vm import VmLab
from fscost.run import Local, RunOutcome, execute
from fscost.stats import Interval
from fscost.study import Outcome, Verdict
from fscost.study.model import Criterion

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.long]

TINY = {"big_mib": "7", "files": "400", "directories": "40"}
"""Options of the smallest workload. nilfs2 counts used space in segments of 8 MiB: overwriting the
large file begins a segment, and so do the small files after it."""
DECIDED = {
    "reiserfs stores small files in the least space": Verdict.REPRODUCED,
    "nilfs2 cycles through the whole device": Verdict.REPRODUCED,
    "nilfs2 keeps continuous snapshots": Verdict.REPRODUCED,
}
"""Claims decided by bytes and space, which hardly depend on the scale: a wrong formula or a wrong
metric would change these verdicts."""


def run(folder: Path, repetitions: int) -> RunOutcome:
    """Run the study in a lab of its own and with its own lock, like another call of the program;
    concurrent runs do not change byte counts."""
    found = study.load("nine-filesystems")
    spec = study.plan(
        found,
        study.scale_of(found, "small"),
        folder,
        options=TINY,
        min_repetitions=repetitions,
        max_repetitions=repetitions,
        max_minutes=60,
        resume=folder.exists(),
    )
    return execute(spec, Local(VmLab(say=print)), lock=f"fscost.test.{os.getpid()}.study")


def side(criterion: Criterion, interval: Interval) -> Outcome:
    """Return the side of the bounds on which the interval lies. The outcome of two repetitions
    depends on the host, so no test fixes it."""
    assert interval.low is not None
    assert interval.high is not None
    least = -math.inf if criterion.at_least is None else criterion.at_least
    most = math.inf if criterion.at_most is None else criterion.at_most
    if interval.high < least or interval.low > most:
        return Outcome.FAILS
    return Outcome.HOLDS if least <= interval.low and interval.high <= most else Outcome.OPEN


def test_all_nine_are_measured_and_every_claim_is_judged_by_samples(tmp_path: Path) -> None:
    run(tmp_path / "run", 1)
    results = run(tmp_path / "run", 2).results
    manifest = results.manifest
    assert [cell.because for cell in manifest.failed] == []
    assert manifest.skipped == []
    found = study.load("nine-filesystems")
    assert len(manifest.done) == 2 * (len(found.profiles) - len(found.optional))
    for cell in manifest.done:
        assert cell.facts["conservation"].startswith(
            "the recording's bytes equal the kernel's counters"
        ), cell.cell
        assert "not_explained" not in cell.facts, (cell.cell, cell.facts["not_explained"])

    report = study.report(found, results)
    [findings] = report.findings
    criteria = [
        (judged.claim.text, entry) for judged in findings.claims for entry in judged.criteria
    ]
    for claim, entry in criteria:
        if entry.criterion.formula is None:
            assert entry.outcome is Outcome.OPEN
            continue
        if found.optional & {each.profile for each in entry.criterion.formula.references}:
            assert "no measurement" in entry.measured.because
            continue
        assert entry.measured.interval is not None, (claim, entry.measured.because)
        if entry.measured.because.endswith("needed)"):
            continue  # a precondition: so small a run cannot show it
        assert entry.measured.interval.n == 2
        if entry.measured.because.startswith("the modelled times depend"):
            continue  # the lower bounds of the times show something else
        times = any(
            reference.metric == "wall_s" for reference in entry.criterion.formula.references
        )
        # Under KVM a guest's time is real, and is judged.
        waits = times and entry.measured.is_virtual
        expected = Outcome.OPEN if waits else side(entry.criterion, entry.measured.interval)
        assert entry.outcome is expected, (claim, entry.measured)
        assert bool(entry.measured.because) == (expected is Outcome.OPEN), (claim, entry.measured)
        assert ("emulated" in entry.measured.because) == waits, (claim, entry.measured)
    assert {
        judged.claim.text: judged.verdict
        for judged in findings.claims
        if judged.claim.text in DECIDED
    } == DECIDED

    for table, lines in findings.tables:
        for line in lines:
            for short, measured in line.measured.items():
                assert measured.interval is not None, (
                    table.title,
                    line.line.label,
                    short,
                    measured.because,
                )
    written = {
        (row["profile"], row["phase"], row["repetition"], row["metric"]): row["value"]
        for row in results.samples.to_pylist()
        if not row["disk"] and row["metric"] in ("device_write_bytes", "first_write_bytes")
    }
    for (profile, phase, repetition, metric), value in written.items():
        if metric == "first_write_bytes":
            assert 0 <= value <= written[profile, phase, repetition, "device_write_bytes"], (
                profile,
                phase,
            )
    for profile in {profile for profile, *_ in written}:
        assert written[profile, "write", 0, "device_write_bytes"] >= 7 << 20, profile
