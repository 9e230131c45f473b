"""Attribution of each byte that a cell wrote, as metrics of its phases, with the check that no byte
is missing (docs/measuring.md)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fscost import analyze, capture, conservation
from fscost.errors import DefectError, FscostError
from fscost.lab.base import CellResult, Sample
from fscost.results import written

WHOLE = "device_write_bytes"
NOT_EXPLAINED = "not_explained"
"""Cell fact with the reason why the cell's writes are not explained."""
NOT_PACKED = "recording_not_packed"
"""Cell fact with the reason why a kept recording is not compressed."""
_BEFORE = "before"


def add_to(
    result: CellResult, recording: Path, *, packs: bool = False
) -> analyze.Explanation | None:
    """Explain a finished cell's recording, and compress it with `packs`. A cell with unaccounted
    bytes fails; a cell that cannot be explained records the reason as a fact."""
    try:
        packed = capture.Explaining(recording).pack() if packs else None
        if packed is not None and packed.not_packed is not None:
            result.facts[NOT_PACKED] = packed.not_packed
        explanation = analyze.explain(recording, packed)
        # The finer sums come first, so that the others are derived from them in one pass over the
        # rows.
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
        result.facts[NOT_EXPLAINED] = "no supported file system was found on the recorded disks"
        return None
    whole = [sample for sample in result.samples if sample.metric == WHOLE and not sample.disk]
    phases = {sample.phase: sample.measured for sample in whole}
    counted = {sample.phase: int(sample.value) for sample in whole}
    # Bytes before the first mark count towards the first interval, as in the agent.
    for each in (found, *of_disks.values()):
        each.setdefault(next(iter(phases)), Counter()).update(each.pop(_BEFORE, Counter()))
    _add_zeroes(found, counted, explanation.punched_bytes, result, recording)
    result.samples += _samples(found, phases)
    for disk, each in of_disks.items():
        _add_zeroes_of_disk(each, found, result.samples, disk)
        result.samples += _samples(each, phases, disk)
    different = differences(result.samples)
    different += [
        f"{phase}: {_explained(found, phase)} bytes explained in a phase that was not counted"
        for phase in found.keys() - phases.keys()
    ]
    if different:
        fail(result, different)
    return explanation


def differences(samples: Sequence[Sample]) -> list[str]:
    """Mismatches between the sum of the kinds and the kernel's count, one sentence each with both
    numbers. Phases without an explanation are not compared."""
    values = {(sample.phase, sample.disk, sample.metric): sample.value for sample in samples}
    phases = {}
    for phase, disk in dict.fromkeys((sample.phase, sample.disk) for sample in samples):
        of_phase = [(phase, disk, kind) for kind in written.KINDS]
        kinds = [values[key] for key in of_phase if key in values]
        if kinds:
            phases[phase, disk] = (sum(kinds), values.get((phase, disk, WHOLE), 0))
    return conservation.unexplained(phases)


def fail(result: CellResult, different: Sequence[str]) -> None:
    """Fail a cell whose bytes do not add up, rather than round them (promise 1)."""
    result.status, result.kind = "failed", "conservation"
    result.because = (
        f"the explanation does not account for what was written: {'; '.join(different)}"
    )


def sums(explanation: analyze.Explanation) -> dict[str, Counter[str]] | None:
    """Sum bytes by phase and metric; None if no disk has a known file system."""
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
    """Sum bytes by disk, phase and metric."""
    found: dict[str, dict[str, Counter[str]]] = {disk: {} for disk in explanation.families}
    for row in explanation.sums("phase", "disk", "structure", "cause", "atime_alone").to_pylist():
        counted = found[row["disk"]].setdefault(row["phase"], Counter())
        for metric in _metrics(row["structure"], row["cause"], row["atime_alone"]):
            counted[metric] += row["length_sum"]
    return found


def _metrics(structure: str, cause: str, atime_alone: bool) -> set[str]:
    """Metrics that a row counts towards. File data is both a structure and a kind, but counts
    once."""
    kind = written.KIND_OF[structure]
    found = {
        written.BY_STRUCTURE[structure],
        kind,
        written.ATIME if atime_alone else _cause_metric(cause),
    }
    return found | {written.JOURNAL_ATIME} if atime_alone and kind == written.JOURNAL else found


def _cause_metric(text: str) -> str:
    """Metric of a row's cause."""
    cause = analyze.carried_cause(text or "unknown")
    return written.MIXED if cause == analyze.MIXED else written.BY_CAUSE[cause]


def _add_zeroes(
    found: dict[str, Counter[str]],
    counted: Mapping[str, int],
    punched_bytes: Mapping[str, int],
    result: CellResult,
    recording: Path,
) -> None:
    """Add zeroes that the kernel counted as written but that arrived as punched holes.

    A loop device turns both zeroing and discards into punched holes. Zeroes that the explanation
    could not tell from discards in the same interval count as unknown. They are added only where
    the explanation accounts for every write that the recording counted; `conservation.unrecorded`
    has already checked that enough holes were punched.
    """
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
    """Assign the bytes that `_add_zeroes` counted as unknown to the disk whose rows fall short of
    the kernel's count."""
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
