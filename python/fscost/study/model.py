"""What a study is: a published experiment, how it is run here, and the rules by which its claims
are judged. All of it is data (`published/`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fscost.profile.model import Profile
from fscost.study.formula import Formula, Reference
from fscost.workload.model import Step


@dataclass(frozen=True)
class Need:
    """Something of the host that a scale needs: a program's name, or a pattern of a file's path;
    and the package that brings it."""

    package: str
    tool: str = ""
    path: str = ""


@dataclass(frozen=True)
class Scale:
    """How large the experiment is, and when it ends."""

    name: str
    summary: str
    factor: float = 1.0
    source: str = ""
    """A pattern of paths; the last in order is the workload's source. Empty: the workload makes its
    own."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    min_repetitions: int = 3
    max_repetitions: int = 5
    max_minutes: float = 15.0
    disk_mib: int = 0
    disks: tuple[str, ...] = ()
    """Models and sizes of disks, as after --disk."""


@dataclass(frozen=True)
class Comparison:
    """The same phases with and without something. `printed`: the change as the source prints it, by
    phase."""

    title: str
    with_: str
    without: str
    printed: Mapping[str, str]


@dataclass(frozen=True)
class Line:
    """A line of a table: one formula for each of its columns."""

    label: str
    unit: str
    cells: Mapping[str, Formula]


@dataclass(frozen=True)
class Table:
    """Numbers side by side. `columns`: short name of a profile → what stands above it; `published`:
    those whose published figures are shown too.
    `is_turned`: profiles are rows and lines columns, for many profiles."""

    title: str
    columns: Mapping[str, str]
    published: tuple[str, ...]
    lines: tuple[Line, ...]
    is_turned: bool = False


@dataclass(frozen=True)
class Precondition:
    """What must be at least so large for a criterion to be judged at all; `because` says what the
    run is too small or too short for."""

    formula: Formula
    at_least: float
    because: str
    unit: str = "s"


@dataclass(frozen=True)
class Criterion:
    """It holds when the formula's value lies within the bounds, the ends included; None is no
    bound. One that nothing here could measure has no formula, and says why: it stays open. So does
    one whose precondition is not met. `neutral` is the value of no effect, where the claim has a
    direction: the criterion is reversed when the value lies on its other side."""

    label: str
    formula: Formula | None
    unit: str = "ratio"
    at_least: float | None = None
    at_most: float | None = None
    neutral: float | None = None
    because: str = ""
    precondition: Precondition | None = None


@dataclass(frozen=True)
class Claim:
    """What the source says, and the rule that decides. `explanation` is prose of ours; no verdict
    depends on it."""

    text: str
    rule: str
    criteria: tuple[Criterion, ...]
    explanation: str = ""


@dataclass(frozen=True)
class Published:
    """The source's own figures; `texts`: as they are printed there, with their unit. `notes`: what
    is derived, and from what."""

    values: Mapping[Reference, float]
    constants: Mapping[str, float]
    notes: Mapping[Reference, str]
    texts: Mapping[Reference, str] = field(default_factory=dict)

    def text(self, formula: Formula) -> str:
        """What the source prints for this formula; empty where it prints nothing, or the formula is
        computed from several figures."""
        return "" if formula.only is None else self.texts.get(formula.only, "")


@dataclass(frozen=True)
class Study:
    """A published experiment. `profiles`: short name, as formulas use it → what is formatted and
    mounted."""

    name: str
    title: str
    source: str
    url: str
    summary: str
    method: str
    metric: str
    profiles: Mapping[str, Profile]
    workload: str
    steps: tuple[Step, ...]
    probe_interval_ms: int | None
    ssd: str
    """A device of the catalogue that each disk's requests are timed on; empty: none."""
    has_activity: bool
    """True if the run draws the activity of the disk `journal`."""
    definitions: Mapping[str, Formula]
    """Constants made of the workload's options."""
    sums: Mapping[str, tuple[str, ...]]
    """Metrics of the study's own: sums of others."""
    published: Published
    scales: Mapping[str, Scale]
    comparisons: tuple[Comparison, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]

    def reference(self, profile: str, phase: str) -> Reference:
        """The study's metric of a phase."""
        return Reference(profile, phase, self.metric)
