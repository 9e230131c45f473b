"""Model of a study: a published experiment, its steps here, and the rules that judge its claims.
All of it is data (`published/`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fscost.profile.model import Profile
from fscost.study.formula import Formula, Reference
from fscost.workload.model import Step


@dataclass(frozen=True)
class Need:
    """Host requirement of a scale: a program's name, or a pattern of a file's path; and the package
    that provides it. `remedy`: command that brings it, if installing the package does not."""

    package: str
    remedy: str = ""
    tool: str = ""
    path: str = ""


@dataclass(frozen=True)
class Scale:
    """Size of the experiment, and the rule that ends it."""

    name: str
    summary: str
    factor: float = 1.0
    source: str = ""
    """Pattern of paths. The last match in sorted order is the workload's source. If empty, the
    workload makes its own source."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    min_repetitions: int = 3
    max_repetitions: int = 5
    max_minutes: float = 15.0
    disk_mib: int = 0
    disks: tuple[str, ...] = ()
    """Models and sizes of disks, in the syntax of --disk."""
    leaves_open: tuple[str, ...] = ()
    """Beginnings of the claims that this size cannot decide."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of the same phases with and without an option. `printed`: the change as the source
    prints it, by phase."""

    title: str
    with_: str
    without: str
    printed: Mapping[str, str]


@dataclass(frozen=True)
class Line:
    """Line of a table: one formula for each column."""

    label: str
    unit: str
    cells: Mapping[str, Formula]


@dataclass(frozen=True)
class Table:
    """Table of numbers side by side. `columns`: short name of a profile → header of its column.
    `published`: profiles whose published figures are also shown. `is_turned`: profiles are rows and
    lines are columns, for many profiles."""

    title: str
    columns: Mapping[str, str]
    published: tuple[str, ...]
    lines: tuple[Line, ...]
    is_turned: bool = False


@dataclass(frozen=True)
class Precondition:
    """Minimum value of a formula below which a criterion is not judged. `because` says in what way
    the run is too small or too short."""

    formula: Formula
    at_least: float
    because: str
    unit: str = "s"


@dataclass(frozen=True)
class Criterion:
    """Criterion that holds if the formula's value lies within the bounds, ends included; None is no
    bound. It stays open if its precondition is not met, or if it has no formula because this study
    does not measure it. `cannot`: the reason why no run of fscost could measure it. `neutral` is
    the value of no effect, if the claim has a direction: a value on its other side reverses the
    criterion."""

    label: str
    formula: Formula | None
    unit: str = "ratio"
    at_least: float | None = None
    at_most: float | None = None
    neutral: float | None = None
    because: str = ""
    cannot: str = ""
    precondition: Precondition | None = None


@dataclass(frozen=True)
class Claim:
    """Claim of the source, and the rule that decides it. `explanation` is our prose; no verdict
    depends on it."""

    text: str
    rule: str
    criteria: tuple[Criterion, ...]
    explanation: str = ""


@dataclass(frozen=True)
class Published:
    """Published figures of the source. `texts`: figures as printed there, with their unit. `notes`:
    which figures are derived, and from what."""

    values: Mapping[Reference, float]
    constants: Mapping[str, float]
    notes: Mapping[Reference, str]
    texts: Mapping[Reference, str] = field(default_factory=dict)

    def text(self, formula: Formula) -> str:
        """Return the source's figure for this formula as printed. It is empty if the source prints
        none, or if the formula uses several figures."""
        return "" if formula.only is None else self.texts.get(formula.only, "")


@dataclass(frozen=True)
class Study:
    """Published experiment. `profiles`: short name in formulas → the profile that is formatted and
    mounted."""

    name: str
    title: str
    source: str
    url: str
    summary: str
    method: str
    metric: str
    profiles: Mapping[str, Profile]
    optional: frozenset[str]
    """Profiles that run only if they are asked for."""
    workload: str
    steps: tuple[Step, ...]
    probe_interval_ms: int | None
    ssd: str
    """Device of the catalogue on which each disk's requests are timed; empty for none."""
    wear: str
    """Device of the catalogue that the writes of the profiles `worn` wear; empty for none."""
    worn: frozenset[str]
    replay: Mapping[str, str]
    """Device model of each disk on which the recordings are replayed, for `modelled_s`."""
    has_activity: bool
    """True if the run draws the activity of the disk `journal`."""
    definitions: Mapping[str, Formula]
    """Constants computed from the workload's options."""
    sums: Mapping[str, tuple[str, ...]]
    """Metrics that the study defines: sums of other metrics."""
    published: Published
    scales: Mapping[str, Scale]
    comparisons: tuple[Comparison, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]

    def left_open(self, scale: Scale, only: Sequence[str] = ()) -> list[str]:
        """Return the claims that no run of this scale decides: it is too small, or nothing is
        measured, or none of the profiles that run is among those compared."""
        run = frozenset(only) or self.profiles.keys() - self.optional
        return [
            claim.text
            for claim in self.claims
            if claim.text.startswith(scale.leaves_open)
            or all(
                criterion.formula is None
                or run.isdisjoint(ref.profile for ref in criterion.formula.references)
                for criterion in claim.criteria
            )
        ]

    def reference(self, profile: str, phase: str) -> Reference:
        """Return the reference to the study's metric of a phase."""
        return Reference(profile, phase, self.metric)
