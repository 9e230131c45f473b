"""Specification of a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fscost.errors import InputError, did_you_mean
from fscost.profile.disks import BLOCK_BYTES, LARGEST_BYTES, SMALLEST_BYTES
from fscost.profile.model import Profile
from fscost.results import METRICS, TOTAL, Combine, written
from fscost.wear.device import Device
from fscost.workload.model import Workload

DEFAULT_DISK_BYTES = 4 << 30
SMALLEST_RECORDING_BYTES = 1 << 20
KEEP = ("all", "one", "none")
SETTLE = ("sync", "remount", "none")
MOST_MINUTES = 525_600
_RESERVED_PHASES = ("mkfs", "mount", TOTAL)


@dataclass(frozen=True)
class StoppingRule:
    """Rule that decides when there are enough repetitions.

    A run makes at least `min_repetitions`, then continues until the interval of `metric` is within
    ± `precision` for every profile's total. It makes at most `max_repetitions`, and begins none
    that would exceed `max_minutes`. The first `whole_repetitions` run however long they take:
    without one repetition there is nothing to compare, and without two there is no interval.
    """

    min_repetitions: int = 3
    max_repetitions: int = 10
    max_minutes: float = 15.0
    metric: str = "device_write_bytes"
    precision: float = 0.02
    whole_repetitions: int = 1

    def __post_init__(self) -> None:
        least, most = self.min_repetitions, self.max_repetitions
        for option, value in (
            ("--repetitions", least if least == most else 1),
            ("--min-repetitions", least),
            ("--max-repetitions", most),
        ):
            if value < 1:
                raise InputError(f"{option} {value} measures nothing", "give 1 or more")
        if most < least:
            raise InputError(
                f"--max-repetitions {most} is below --min-repetitions {least}",
                "give at least as many, or leave one out",
            )
        if not self.max_minutes > 0:
            raise InputError(
                f"--max-minutes {self.max_minutes:g} leaves no time", "give more than 0"
            )
        if self.max_minutes > MOST_MINUTES:
            raise InputError(
                f"--max-minutes {self.max_minutes:g} is too many",
                f"give at most {MOST_MINUTES:,}, a year",
            )
        if not 0 < self.precision < 1:
            raise InputError(
                f"--precision {self.precision:g} is out of range", "give a fraction: 0.02 is ± 2 %"
            )
        if self.metric not in METRICS or METRICS[self.metric].combine is Combine.ONLY:
            usable = [
                name for name, metric in METRICS.items() if metric.combine is not Combine.ONLY
            ]
            listed = ", ".join(name for name in usable if name not in written.MEANINGS)
            problem = "has no total" if self.metric in METRICS else "is unknown"
            raise InputError(
                f"--metric {self.metric!r} {problem}",
                did_you_mean(self.metric, usable)
                or f"one of: {listed}, or the bytes of one structure or cause, such as"
                f" {written.JOURNAL}",
            )


@dataclass(frozen=True)
class RunSpec:
    """Specification of a run. `folder` receives its results; `request` is the caller's own note,
    kept in the manifest (see `results.Manifest`)."""

    profiles: tuple[Profile, ...]
    workload: Workload
    folder: Path
    seed: int = 0
    baseline: str = ""  # empty: the first profile
    stopping: StoppingRule = field(default_factory=StoppingRule)
    disk_size_bytes: int = 0  # 0: large enough for the workload
    settle: str | None = None  # None: as each step says
    drop_caches: bool = False
    probe_interval_ms: int | None = None
    keep: str = "one"
    device: Path | None = None
    timeout_s: float | None = None  # None: each step's own limit
    max_recording_bytes: int | None = None
    writable: tuple[Path, ...] = ()
    network: bool = False
    ssd: str = ""  # device of the catalogue that times each disk's requests
    wear_device: Device | None = None
    device_models: Mapping[str, str] = field(default_factory=dict)
    """Text of each device model that a disk names, as TOML."""
    replay: Mapping[str, str] = field(default_factory=dict)
    """Device model of each disk on which the recordings are replayed afterwards."""
    store: str = ""
    """URL of the store that receives the recordings; empty: the folder does."""
    resume: bool = False
    trust: bool = False  # use a folder that others own or can write to
    name: str = ""
    command_line: tuple[str, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_profiles(self)
        _check_workload(self.workload)
        if not self.baseline:
            object.__setattr__(self, "baseline", self.profiles[0].name)
        if not self.disk_size_bytes:
            object.__setattr__(
                self, "disk_size_bytes", max(DEFAULT_DISK_BYTES, self.workload.disk_bytes)
            )
        _check_options(self)

    @property
    def only_device(self) -> Path | None:
        """The real device of the run, if it has exactly one."""
        disks = (disk for profile in self.profiles for disk in profile.disks)
        found = {Path(disk.device) for disk in disks if disk.device}
        found |= {self.device} if self.device is not None else set()
        return found.pop() if len(found) == 1 else None

    @property
    def options(self) -> dict[str, Any]:
        """Options common to all cells. A resumed run must have the same options as its first
        part."""
        found: dict[str, Any] = {
            "disk_size_bytes": self.disk_size_bytes,
            "settle": self.settle,
            "drop_caches": self.drop_caches,
            "probe_interval_ms": self.probe_interval_ms,
            "keep": self.keep,
            "device": None if self.device is None else str(self.device),
            "writable": [str(path) for path in self.writable],
            "network": self.network,
        }
        if (device := self.wear_device) is not None:
            found["wear_device"] = {"name": device.name, **device.values}
        if self.device_models:
            found["device_models"] = dict(self.device_models)
        if self.replay:
            found["replay"] = dict(self.replay)
        return found


def plain(value: Profile | Workload | StoppingRule) -> dict[str, Any]:
    """Convert a dataclass to the form it has in JSON, so that it can be compared with a
    manifest."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(value), default=str))
    return found


def _check_profiles(spec: RunSpec) -> None:
    if not spec.profiles:
        raise InputError("no profile is named", "name one with --on, for example --on ext4")
    seen = set()
    for profile in spec.profiles:
        if profile.name in seen:
            raise InputError(
                f"profile {profile.name!r} is named twice",
                "a repetition runs each profile once: leave one out",
            )
        seen.add(profile.name)
        if any(not character.isprintable() for character in profile.name):
            raise InputError(
                f"profile {profile.name!r} has characters that cannot be printed",
                "spell it without them",
            )
    if spec.baseline and spec.baseline not in seen:
        raise InputError(
            f"--baseline {spec.baseline!r} is not one of the profiles",
            did_you_mean(spec.baseline, seen)
            or f"one of: {', '.join(p.name for p in spec.profiles)}",
        )


def same_profiles(profiles: Sequence[Profile]) -> list[tuple[str, str]]:
    """Find pairs of names that stand for the same file system."""
    first: dict[Profile, str] = {}
    found = []
    for profile in profiles:
        plain_profile = replace(profile, name="", summary="", refused="", sweep="", levels=())
        if plain_profile in first:
            found.append((first[plain_profile], profile.name))
        first.setdefault(plain_profile, profile.name)
    return found


def _check_workload(workload: Workload) -> None:
    names = [step.name for step in workload.steps]
    for name in names:
        if name in _RESERVED_PHASES or names.count(name) > 1:
            fault = "is reserved" if name in _RESERVED_PHASES else "is used twice"
            raise InputError(
                f"workload {workload.name!r}: the step name {name!r} {fault}", "rename the step"
            )
    if not any(step.measured for step in workload.steps):
        raise InputError(
            f"workload {workload.name!r} has no measured step", "give a command after --"
        )


def _check_options(spec: RunSpec) -> None:
    try:
        str(spec.folder).encode()
    except UnicodeEncodeError:
        shown = (
            str(spec.folder).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        )
        raise InputError(
            f"--out {shown} is not UTF-8",
            "name a folder in UTF-8: the manifest and the plan of a cell are JSON",
        ) from None
    size = spec.disk_size_bytes
    is_possible = SMALLEST_BYTES <= size <= LARGEST_BYTES and size % BLOCK_BYTES == 0
    if spec.device is None and not is_possible:
        raise InputError(
            f"a disk of {size} bytes cannot be made",
            "--size takes 64K to 1T, in whole 4 KiB blocks",
        )
    if size < spec.workload.disk_bytes:
        need = -(-spec.workload.disk_bytes >> 20)
        raise InputError(
            f"a disk of {size >> 20} MiB is too small for {spec.workload.name}: it needs"
            f" {need} MiB",
            f"--size {need}M, or a smaller --scale",
        )
    if spec.timeout_s is not None and spec.timeout_s < 1:
        raise InputError(
            f"--timeout {spec.timeout_s:g} s is too short", "give 1s or more, for example 10m"
        )
    if spec.max_recording_bytes is not None and spec.max_recording_bytes < SMALLEST_RECORDING_BYTES:
        raise InputError(
            f"--max-recording {spec.max_recording_bytes} bytes is too small",
            f"give {SMALLEST_RECORDING_BYTES >> 20}M or more, for example 20G",
        )
    for path in spec.writable:
        if not path.is_dir():
            raise InputError(f"--writable {path} is not a folder", "name a folder that exists")
    for option, value, known in (("--keep", spec.keep, KEEP), ("--settle", spec.settle, SETTLE)):
        if value is not None and value not in known:
            raise InputError(
                f"{option} {value!r} is unknown",
                did_you_mean(value, known) or f"one of: {', '.join(known)}",
            )
    if spec.probe_interval_ms is not None and spec.probe_interval_ms < 1:
        raise InputError(
            f"--probe {spec.probe_interval_ms} is not an interval", "give milliseconds, 1 or more"
        )
