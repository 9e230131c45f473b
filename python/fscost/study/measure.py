"""Values of formulas, one for each repetition that has all required samples, so that values with
and without an option are paired."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from fscost import stats
from fscost.results import METRICS, RunResults
from fscost.stats import Interval
from fscost.study.formula import Formula, Reference
from fscost.study.model import Published, Study

_VIRTUAL = "virtual_"
_OF_NO_DEVICE = (
    "the processor was emulated: its clock counts instructions, so waiting times are the"
    " emulator's, not a device's"
)


@dataclass(frozen=True)
class Measured:
    """Measured value of a formula. `interval` is None if there is no value. `because` gives the
    reason, or the reason why the value is no evidence. `is_virtual`: measured by the clock of an
    emulated guest."""

    interval: Interval | None
    because: str = ""
    is_virtual: bool = False


@dataclass(frozen=True)
class Numbers:
    """Samples of a run by reference and repetition, and the constants of its workload. `virtual`:
    references to times of an emulated guest."""

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
        return Measured(
            _spread(values) if formula.is_spread else stats.interval(values),
            _OF_NO_DEVICE if any(_waits(ref) for ref in virtual) else "",
            bool(virtual),
        )


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
