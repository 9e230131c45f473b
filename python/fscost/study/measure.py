"""What formulas come to: one value for each repetition that has all of it, so that with and without are paired."""

from collections.abc import Mapping
from dataclasses import dataclass

from fscost import stats
from fscost.results import RunResults
from fscost.stats import Interval
from fscost.study.formula import Formula, Reference
from fscost.study.model import Published, Study


@dataclass(frozen=True)
class Measured:
    """`interval` is None when there is no value; `because` says why."""

    interval: Interval | None
    because: str = ""


@dataclass(frozen=True)
class Numbers:
    """The samples of a run by reference and repetition, and the constants of its workload."""

    samples: Mapping[Reference, Mapping[int, float]]
    constants: Mapping[str, float]

    @staticmethod
    def of(study: Study, results: RunResults) -> "Numbers":
        """Of the run of a study."""
        shorts = {profile.name: short for short, profile in study.profiles.items()}
        samples: dict[Reference, dict[int, float]] = {}
        for row in results.samples.to_pylist():
            if not row["disk"] and row["profile"] in shorts:
                samples.setdefault(Reference(shorts[row["profile"]], row["phase"], row["metric"]), {})[row["repetition"]] = row["value"]
        options = results.manifest.workload.get("options", [])
        constants = {name: float(value) for name, value in options if isinstance(value, (int, float))}
        return Numbers(samples, {name: formula.value({}, constants) for name, formula in study.definitions.items()} | constants)

    def measured(self, formula: Formula) -> Measured:
        """The formula's value in each repetition, and their interval."""
        missing = sorted(f"{ref.profile}.{ref.phase}" for ref in formula.references if ref not in self.samples)
        missing += sorted(name for name in formula.constants if name not in self.constants)
        if missing:
            return Measured(None, f"not measured: {', '.join(dict.fromkeys(missing))}")
        columns = {ref: self.samples[ref] for ref in formula.references}
        repetitions = sorted(set.intersection(*(set(column) for column in columns.values())))
        if not repetitions:
            return Measured(None, "no repetition has all of it")
        values = []
        for repetition in repetitions:
            try:
                values.append(formula.value({ref: column[repetition] for ref, column in columns.items()}, self.constants))
            except ZeroDivisionError:
                return Measured(None, f"a divisor is zero in repetition {repetition}")
        return Measured(stats.interval(values))


def published_value(formula: Formula, published: Published) -> float | None:
    """The same formula over the source's own figures; None where the source has not got them."""
    if not formula.references <= published.values.keys() or not formula.constants <= published.constants.keys():
        return None
    return formula.value(published.values, published.constants)
