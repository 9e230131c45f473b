"""What `fscost explain --json` prints."""

from typing import Any

from pydantic import Field, RootModel

from fscost.analyze.fsyncs import Fsyncs
from fscost.analyze.instant import Request, Running, Volatile
from fscost.cli.output.schema_base import Document, Object, Pairs


class Group(Object):
    """Bytes of one group, and of its parts."""

    name: str
    write_bytes: int
    parts: Any
    nand_write_bytes: float | None = None


class Rest(Object):
    """The groups that are not listed."""

    groups: int
    write_bytes: int
    parts: Any
    nand_write_bytes: float | None = None


class NandGroup(Object):
    """NAND bytes that belong to no listed group."""

    name: str
    nand_write_bytes: float


class Explained(Object):
    """Written bytes of some phases, by group."""

    end: str
    families: dict[str, str | None]
    phases: list[str]
    write_bytes: int
    unknown_write_bytes: int
    doubtful_owner_write_bytes: int
    by: str
    groups: list[Group]
    rest: Rest | None
    findings: list[str]
    journal: Pairs | None
    fsyncs: Fsyncs | None = None
    ssd: str | None = None
    nand_write_bytes: float | None = None
    exact_nand_write_bytes: float | None = None
    roaming_nand_write_bytes: float | None = None
    lifetime_runs: float | None = None
    lifetime_years: float | None = None
    runs_per_day: float | None = None
    other_groups: list[NandGroup] = Field(default_factory=list)


class ExplainedRecording(Explained):
    """One recording."""

    recording: str
    profile: str = ""
    repetition: int = 0
    disks: dict[str, Explained] = Field(default_factory=dict)


class ExplainedRun(Object):
    """The recordings of a run."""

    run: str
    recordings: list[ExplainedRecording]


class ExplainRecording(ExplainedRecording, Document):
    """`fscost explain RECORDING --json`."""


class ExplainRun(ExplainedRun, Document):
    """`fscost explain RUN --json`."""


class ExplainSources(Document):
    """`fscost explain SOURCE SOURCE… --json`."""

    sources: list[ExplainedRun | ExplainedRecording]


class Explain(RootModel[ExplainRecording | ExplainRun | ExplainSources]):
    """`fscost explain --json`."""


class ExplainDiff(Document):
    """`fscost explain --diff --json`."""

    title: str
    first_end: str = "finished"
    second_end: str = "finished"
    groups: list[Pairs]
    """The table by structure, or by the grouping asked for."""
    tables: dict[str, list[Pairs]] = Field(default_factory=dict)
    """All tables, by grouping; each adds up to the same difference."""
    findings: list[str]


class WriteSize(Object):
    """Writes of at most this many bytes, a power of two, and of more than half as many."""

    up_to_bytes: int
    requests: int
    bytes: int


class ExplainedDisk(Object):
    """Requests of a disk of a trace. `again_write_bytes`, `distinct_write_bytes` and
    `touched_write_bytes` (each block as often as a write touches it) refer to blocks of 4 KiB; they
    are null if the trace writes to too many places."""

    name: str
    read_requests: int
    read_bytes: int
    write_requests: int
    write_bytes: int
    discard_requests: int
    discard_bytes: int
    zero_requests: int
    zero_bytes: int
    flushes: int
    fua_writes: int
    sequential_write_bytes: int
    again_write_bytes: int | None
    distinct_write_bytes: int | None
    touched_write_bytes: int | None
    write_sizes: list[WriteSize]


class ExplainTrace(Document):
    """`fscost explain TRACE --json`."""

    trace: str
    format: str
    duration_s: float
    disks: list[ExplainedDisk]


class Structure(Object):
    """Bytes of one structure."""

    structure: str
    write_bytes: int


class ExplainAt(Document):
    """`fscost explain --at INSTANT --json`."""

    recording: str
    profile: str = ""
    repetition: int = 0
    end: str = "finished"
    at_ns: int
    phase: str
    phase_begin_ns: int
    written: list[Structure]
    written_bytes: int
    phase_written: list[Structure]
    phase_written_bytes: int
    last_flush_ns: int | None
    volatile: list[Volatile]
    volatile_bytes: int
    volatile_requests: int
    running: Running | None
    recovery: Pairs | None
    durable_recovery: Pairs | None
    behind_superblock: list[Structure]
    under_way: list[Request]
    before: list[Request]
    after: list[Request]
