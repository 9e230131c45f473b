"""Values of formulas, one for each repetition that has all required samples, so that values with
and without an option are paired."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import inf, isfinite

from fscost import stats
from fscost.results import METRICS, RunResults
from fscost.stats import Interval
from fscost.study import cut
from fscost.study.formula import Formula, Reference
from fscost.study.model import Published, Study
from fscost.study.unknown import range_of

_VIRTUAL = "virtual_"
_OF_NO_DEVICE = (
    "the processor was emulated: its clock counts instructions, so waiting times are the"
    " emulator's, not a device's"
)


@dataclass(frozen=True)
class Measured:
    """Measured value of a formula. `interval` is None if there is no value. `because` gives the
    reason, or the reason why the value is no evidence. `is_virtual`: measured by the clock of an
    emulated guest. `bounds`: without a value, the ends between which it lies whatever the profiles
    `unknown`, which were not measured, would have given; either end may be infinite."""

    interval: Interval | None
    because: str = ""
    is_virtual: bool = False
    bounds: Interval | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """Samples of a run by reference and repetition, those of its kept power cuts, and the constants
    of its workload. `virtual`: references to times of an emulated guest."""

    samples: Mapping[Reference, Mapping[int, float]]
    constants: Mapping[str, float]
    virtual: frozenset[Reference] = frozenset()

    @staticmethod
    def of(study: Study, results: RunResults, names: Mapping[str, str]) -> "Numbers":
        """Return the numbers of a run of the study. `names` maps a profile's short name to its name
        in the run, which includes the kernel if there are several."""
        shorts = {name: short for short, name in names.items()}
        samples: dict[Reference, dict[int, float]] = {}
        virtual = set()
        for row in results.samples.to_pylist():
            if row["profile"] in shorts:
                short = shorts[row["profile"]]
                reference = Reference(short, row["phase"], row["metric"], row["disk"])
                samples.setdefault(reference, {})[row["repetition"]] = row["value"]
                if row["unit"].startswith(_VIRTUAL):
                    virtual.add(reference)
        for reference, repetition, value in cut.samples(cut.kept(results.folder), shorts):
            samples.setdefault(reference, {})[repetition] = value
        for name, parts in study.sums.items():
            virtual |= _add_sum(samples, virtual, name, parts)
        options = results.manifest.workload.get("options", [])
        constants = {
            name: float(value) for name, value in options if isinstance(value, (int, float))
        }
        constants |= {
            name: formula.value({}, constants) for name, formula in study.definitions.items()
        }
        return Numbers(samples, constants, frozenset(virtual))

    def measured(self, formula: Formula) -> Measured:
        """Compute the formula's value in each repetition, and the interval of these values."""
        missing = sorted(str(ref) for ref in formula.references if ref not in self.samples)
        missing += sorted(name for name in formula.constants if name not in self.constants)
        if missing:
            return Measured(None, f"there is no measurement of {', '.join(dict.fromkeys(missing))}")
        if not formula.references:
            return Measured(stats.interval([formula.value({}, self.constants)]))
        columns = {ref: self.samples[ref] for ref in formula.references}
        repetitions = sorted(set.intersection(*(set(column) for column in columns.values())))
        if not repetitions:
            return Measured(None, "no repetition has all of these measurements")
        values = []
        for repetition in repetitions:
            numbers = {ref: column[repetition] for ref, column in columns.items()}
            try:
                values.append(formula.value(numbers, self.constants))
            except ZeroDivisionError:
                return Measured(None, f"a divisor is zero in repetition {repetition}")
        virtual = formula.references & self.virtual
        if formula.is_spread and stats.spread(values) is None:
            return Measured(None, "one repetition, or a median of zero, has no spread")
        return Measured(
            _spread(values) if formula.is_spread else stats.interval(values),
            _OF_NO_DEVICE if any(_waits(ref) for ref in virtual) else "",
            bool(virtual),
        )

    @property
    def profiles(self) -> frozenset[str]:
        """Short names of the profiles that have samples."""
        return frozenset(reference.profile for reference in self.samples)

    def bounded(self, formula: Formula) -> Measured | None:
        """Return what is known of a formula that compares measured profiles with others; None if
        nothing is."""
        known = [ref for ref in formula.references if ref in self.samples]
        unknown = formula.references - set(known)
        waits = any(_waits(ref) for ref in self.virtual.intersection(known))
        lacks_profiles = not self.profiles & {ref.profile for ref in unknown}
        has_constants = formula.constants <= self.constants.keys()
        if not (known and unknown and lacks_profiles and has_constants):
            return None
        if formula.is_spread or waits:
            return None
        columns = {ref: self.samples[ref] for ref in known}
        repetitions = sorted(set.intersection(*(set(column) for column in columns.values())))
        if len(repetitions) < 2:  # A single repetition has no interval.
            return None
        numbers = [{ref: column[at] for ref, column in columns.items()} for at in repetitions]
        try:
            ranges = [range_of(formula, each, self.constants) for each in numbers]
        except ZeroDivisionError:
            return None
        low = _end([found.low for found in ranges], "low")
        high = _end([found.high for found in ranges], "high")
        return Measured(
            None,
            "",
            bool(self.virtual.intersection(known)),
            Interval(len(ranges), low if isfinite(low) else high, low, high),
            tuple(sorted({ref.profile for ref in unknown})),
        )


def _end(values: Sequence[float], end: str) -> float:
    """Compute the low or high end of the values' interval; an infinite value leaves no end."""
    if not all(map(isfinite, values)):
        return inf if end == "high" else -inf
    found = stats.interval(values)
    value = found.low if end == "low" else found.high
    assert value is not None, "two values or more have an interval"
    return value


def _add_sum(
    samples: dict[Reference, dict[int, float]],
    virtual: Set[Reference],
    name: str,
    parts: Sequence[str],
) -> set[Reference]:
    """Add the sum of these metrics to the samples wherever all of them were measured. Return the
    sums that are virtual."""
    found = set()
    for first in [reference for reference in samples if reference.metric == parts[0]]:
        of_parts = [replace(first, metric=part) for part in parts]
        if not all(part in samples for part in of_parts):
            continue
        whole = replace(first, metric=name)
        repetitions = set.intersection(*(set(samples[part]) for part in of_parts))
        samples[whole] = {
            repetition: sum(samples[part][repetition] for part in of_parts)
            for repetition in sorted(repetitions)
        }
        found |= {whole} if virtual & set(of_parts) else set()
    return found


def _spread(values: Sequence[float]) -> Interval:
    """Compute the spread. It describes exactly these repetitions, so its interval has no width."""
    found = stats.spread(values)
    return Interval(len(values), found or 0.0, found, found)


def _waits(reference: Reference) -> bool:
    return reference.metric in METRICS and METRICS[reference.metric].waits


def published_value(formula: Formula | None, published: Published) -> float | None:
    """Compute the same formula from the source's figures. The result is None if the source lacks a
    figure, and for a spread, because the source gives one value of each."""
    if (
        formula is None
        or formula.is_spread
        or not formula.references <= published.values.keys()
        or not formula.constants <= published.constants.keys()
    ):
        return None
    return formula.value(published.values, published.constants)
