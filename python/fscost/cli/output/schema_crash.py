"""Models of what `fscost crash --json` prints."""

from typing import Literal

from fscost.cli.output.schema_base import Document, Object


class CrashMinimised(Object):
    """Which part of a state's lost blocks is enough to break the same promise."""

    state: int
    """Number of the state that was minimised."""
    lost: int
    """Blocks that it loses then; 0 if it is broken even without a lost block."""
    lost_before: int
    trials: int
    """States that were examined for it."""
    is_minimal: bool
    """Each of them is needed. False if the trials ran out."""
    writes: list[str]
    """Structure and file of the lost blocks."""


class CrashReduced(Object):
    """The fewest operations that have the same fault as a state, on a disk of their own."""

    number: int
    """Number of the state whose operations these are a part of."""
    workload: str
    """Does these operations, as `--workload`; empty if none of the trials had the fault."""
    operations: list[str]
    """The operations of each round; of a sequence, its calls, with fsync or fdatasync."""
    rounds: int
    before: int
    """Operations that the workload had done by then; of sequences, those of the one at fault."""
    trials: int
    """Short runs that were made for it."""
    folder: str
    """Their run, in the folder of this one; empty if there is none."""
    state: int
    """Number of that run's first state with the fault."""


class CrashCounts(Object):
    """Numbers of states with each fault."""

    lost: int
    stale: int
    corrupt: int
    repaired: int
    silent: int
    """States with a broken promise that neither the kernel nor a check reports."""
    emptied: int
    """States in which a file that was replaced without fsync is neither version."""


class CrashRow(CrashCounts):
    """A profile's verdict, the number of states with each fault, and its cost."""

    profile: str
    verdict: Literal[
        "SAFE", "ALLOWED-LOSS", "NEEDS-REPAIR", "EXPOSES-STALE", "LOSES-ACKED", "CORRUPTS"
    ]
    states: int
    """Different states that were examined."""
    states_tried: int
    """States before those with equal contents were left out."""
    cuts: int
    promises: int
    """How many the workload made; of a command, its calls of fsync and fdatasync."""
    unknown_calls: int
    """Calls of a command whose promise is unknown and not checked, because the recording lacks
    their file or duration."""
    unnamed: int
    """States in which a synced file has no name, because its folder was not synced."""
    data_lost_s_p50: float | None
    """Seconds of unsynced work that a power cut takes from a file that grows: the median of the
    states. Null if the workload has none, as the next three."""
    data_lost_s_max: float | None
    names_lost_s_p50: float | None
    """The same of new files."""
    names_lost_s_max: float | None
    repair_s: float | None
    """The longest repair of a state, on a disk in memory; null without a repair."""
    example: str
    """The first state with the worst fault, in words; empty if there is none."""
    minimised: CrashMinimised | None
    """The same state, minimised. Only with the native lab, unless `--no-minimise` is given."""
    reduced: CrashReduced | None
    """The fewest operations with its fault, if the operations of the workload are known."""
    device_write_bytes: float
    device_flushes: float


class CrashControl(Object):
    """Flushes of a profile that were left out one at a time, and how many of these broke a
    promise."""

    profile: str
    flushes: int
    noticed: int
    states: int
    """States that were examined for it."""


class CrashLost(Object):
    """A lost disk and one way back, of a profile on several disks (`--lose-disks`)."""

    profile: str
    disk: str
    how: Literal["gone", "blank", "stale"]
    way: str
    is_read_only: bool
    tried: int
    """States that were examined."""
    mounts: int
    whole: int
    """States that mounted and kept every promise."""
    clean: int
    """Of these, states without an error in the check after that."""
    words: list[str]
    """What programs said in the first state that was not whole and clean."""
    example: str
    """The first broken promise, in words; empty if there is none."""


class CrashSeconds(Object):
    """Second power cuts of a profile, as if its recoveries had sent no flush (a control)."""

    profile: str
    recoveries: int
    """States whose recovery was recorded, and cut."""
    states: int
    """Second states that were examined."""
    broken: int
    """Second states with a fault of a kind that their first state has not."""


class CrashAgain(CrashSeconds):
    """Second power cuts of a profile, during the recovery from the first (`--again`)."""

    example: str
    """The first broken one, in words; empty if there is none."""


class Crash(Document):
    """`fscost crash --json`."""

    run: str
    workload: str
    device: str
    seed: int
    answer: str
    """The profiles of each verdict, the worst verdict first."""
    rows: list[CrashRow]
    controls: list[CrashControl]
    lost: list[CrashLost]
    again: list[CrashAgain]
    again_controls: list[CrashSeconds]
    notes: list[str]


class CrashControlRow(CrashCounts):
    """A profile whose faults are known, on a device, and the number of states with each fault."""

    profile: str
    device: str
    some: list[str]
    """Faults that some states must have."""
    none: list[str]
    """Faults that no state may have."""
    states: int
    is_right: bool


class CrashControls(Document):
    """`fscost crash --controls --json`."""

    run: str
    seed: int
    rows: list[CrashControlRow]


class CrashPiece(Object):
    """Contiguous pending blocks of one request with the same fate and explanation."""

    event: int
    before_ns: int
    """Time from the request's submission to the cut."""
    disk: str
    offset: int
    length: int
    is_kept: bool
    structure: str
    cause: str
    path: str | None


class CrashState(Document):
    """`fscost crash RUN --state N --json`."""

    run: str
    profile: str
    state: int
    second: int | None
    """Number of the second state after it, if one was named."""
    device: str
    at_ns: int
    how: str
    faults: list[str]
    words: list[str]
    """What programs said that failed: mount, fsck."""
    rows: list[CrashPiece]
    minimised: CrashMinimised | None
