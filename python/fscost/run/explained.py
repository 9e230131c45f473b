"""What each written byte of a cell was, as metrics of its phases; and the proof that these are all
of them (docs/measuring.md)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fscost import analyze, capture
from fscost.errors import DefectError, FscostError
from fscost.lab.base import CellResult, Sample
from fscost.results import written

WHOLE = "device_write_bytes"
NOT_EXPLAINED = "not_explained"
"""The fact of a cell that says why it has none of these metrics."""
_BEFORE = "before"


def add_to(result: CellResult, recording: Path) -> analyze.Explanation | None:
    """Explain a finished cell's recording; a cell whose bytes are not all accounted for fails, one
    that cannot be explained says so."""
    try:
        explanation = analyze.explain(recording)
        # The finer sums first: the others are taken from them, in one pass over the rows.
        of_disks = sums_of_disks(explanation) if len(explanation.families) > 1 else {}
        found = sums(explanation)
    except DefectError as error:
        result.keep_recording = True
        result.facts[NOT_EXPLAINED] = (
            f"{error.what}; its recording is kept: {capture.how_to_report(recording)}"
        )
        return None
    except FscostError as error:
        result.facts[NOT_EXPLAINED] = error.what
        return None
    if found is None:
        result.facts[NOT_EXPLAINED] = "fscost knows no file system that it found on its disks"
        return None
    phases = {
        sample.phase: sample.measured
        for sample in result.samples
        if sample.metric == WHOLE and not sample.disk
    }
    # What comes before the first mark is counted into the first interval, as the agent does.
    for each in (found, *of_disks.values()):
        each.setdefault(next(iter(phases)), Counter()).update(each.pop(_BEFORE, Counter()))
    _add_zeroes(found, explanation.punched_bytes, result, recording)
    result.samples += _samples(found, phases)
    for disk, each in of_disks.items():
        _add_zeroes_of_disk(each, found, result.samples, disk)
        result.samples += _samples(each, phases, disk)
    different = differences(result.samples)
    different += [
        f"{phase}: {_explained(found, phase)} bytes explained, of a phase that was not counted"
        for phase in found.keys() - phases.keys()
    ]
    if different:
        fail(result, different)
    return explanation


def differences(samples: Sequence[Sample]) -> list[str]:
    """Where the kinds do not add up to what the kernel counted, one sentence each with both
    numbers; nothing of phases that are not explained."""
    values = {(sample.phase, sample.disk, sample.metric): sample.value for sample in samples}
    found = []
    for phase, disk in dict.fromkeys((sample.phase, sample.disk) for sample in samples):
        kinds = [
            values[phase, disk, kind] for kind in written.KINDS if (phase, disk, kind) in values
        ]
        counted = values.get((phase, disk, WHOLE), 0)
        if kinds and sum(kinds) != counted:
            where = f"{phase}, disk {disk}" if disk else phase
            found.append(
                f"{where}: {sum(kinds):.0f} bytes explained, {counted:.0f} written by the kernel's counter"
            )
    return found


def fail(result: CellResult, different: Sequence[str]) -> None:
    """Promise 1: a cell whose bytes do not add up is failed, not rounded."""
    result.status, result.kind = "failed", "conservation"
    result.because = (
        f"the explanation does not account for what was written: {'; '.join(different)}"
    )


def sums(explanation: analyze.Explanation) -> dict[str, Counter[str]] | None:
    """Bytes by phase and metric; None where no disk has a file system that is known."""
    if not any(explanation.families.values()):
        return None
    found: dict[str, Counter[str]] = {}
    for row in explanation.sums(
        "phase", "structure", "cause", "atime_alone", "doubtful"
    ).to_pylist():
        counted = found.setdefault(row["phase"], Counter())
        for metric in _metrics(row["structure"], row["cause"], row["atime_alone"]):
            counted[metric] += row["length_sum"]
        if row["doubtful"]:
            counted[written.DOUBTFUL] += row["length_sum"]
    return found


def sums_of_disks(explanation: analyze.Explanation) -> dict[str, dict[str, Counter[str]]]:
    """The same for each disk."""
    found: dict[str, dict[str, Counter[str]]] = {disk: {} for disk in explanation.families}
    for row in explanation.sums("phase", "disk", "structure", "cause", "atime_alone").to_pylist():
        counted = found[row["disk"]].setdefault(row["phase"], Counter())
        for metric in _metrics(row["structure"], row["cause"], row["atime_alone"]):
            counted[metric] += row["length_sum"]
    return found


def _metrics(structure: str, cause: str, atime_alone: bool) -> set[str]:
    """All that a row counts for; once each, though file data is a structure and a kind."""
    kind = written.KIND_OF[structure]
    found = {
        written.BY_STRUCTURE[structure],
        kind,
        written.ATIME if atime_alone else _cause_metric(cause),
    }
    return found | {written.JOURNAL_ATIME} if atime_alone and kind == written.JOURNAL else found


def _cause_metric(text: str) -> str:
    """A journal's own blocks count with what they carry: `names+log` is for names alone."""
    causes = text.split("+") if text else ["unknown"]
    carried = [cause for cause in causes if cause != "log"] or causes
    return written.BY_CAUSE[carried[0]] if len(carried) == 1 else written.MIXED


def _add_zeroes(
    found: dict[str, Counter[str]],
    punched_bytes: Mapping[str, int],
    result: CellResult,
    recording: Path,
) -> None:
    """Zeroes that the kernel counted as written and that arrived as holes punched: a loop device
    makes the same of a discard. Those that the explanation could not
    tell from discards of the same interval are unknown. Only where the recording's own count of
    writes is explained to the byte; `capture.differences`
    held that there were holes enough."""
    counted = {
        sample.phase: int(sample.value)
        for sample in result.samples
        if sample.metric == WHOLE and not sample.disk
    }
    short = [phase for phase, count in counted.items() if _explained(found, phase) < count]
    if not short:
        return
    recorded: Counter[str] = Counter()
    for interval in result.recorded or capture.intervals(recording):
        phase = next(iter(counted)) if interval.name == _BEFORE else interval.name
        recorded[phase] += sum(
            disk["write_bytes"] + disk["zero_bytes"] for disk in interval.disks.values()
        )
    for name, count in punched_bytes.items():
        recorded[next(iter(counted)) if name == _BEFORE else name] += count
    for phase in short:
        if _explained(found, phase) == recorded[phase]:
            for metric in _metrics("unknown", "unknown", atime_alone=False):
                found.setdefault(phase, Counter())[metric] += counted[phase] - recorded[phase]


def _add_zeroes_of_disk(
    found: dict[str, Counter[str]],
    whole: Mapping[str, Counter[str]],
    samples: Sequence[Sample],
    disk: str,
) -> None:
    """What `_add_zeroes` found unknown, where it is: the disk whose rows fall short of the kernel's
    count."""
    for sample in samples:
        if sample.metric != WHOLE or sample.disk != disk:
            continue
        short = int(sample.value) - _explained(found, sample.phase)
        if 0 < short <= whole.get(sample.phase, Counter())[written.UNKNOWN]:
            for metric in _metrics("unknown", "unknown", atime_alone=False):
                found.setdefault(sample.phase, Counter())[metric] += short


def _explained(found: dict[str, Counter[str]], phase: str) -> int:
    return sum(found.get(phase, Counter())[kind] for kind in written.KINDS)


def _samples(
    found: dict[str, Counter[str]], phases: dict[str, bool], disk: str = ""
) -> Iterator[Sample]:
    for phase, measured in phases.items():
        counted = found.get(phase, Counter())
        for metric in written.MEANINGS:
            yield Sample(phase, measured, disk, metric, "bytes", float(counted[metric]))
