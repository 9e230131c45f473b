"""A cell with a fake agent, and a native module with a fake recording."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import fscost
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell.binaries import Binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.profile.model import DiskSpec, FormatPlan, Profile
from fscost.run.measure import Task, measure
from fscost.workload.model import Step, Workload

COUNTERS = {
    "read_requests": 1,
    "read_bytes": 4096,
    "write_requests": 2,
    "write_bytes": 12288,
    "discard_requests": 1,
    "discard_bytes": 8192,
    "flush_requests": 3,
}
TOTALS = {
    "read_requests": 1,
    "read_bytes": 4096,
    "write_requests": 2,
    "write_bytes": 8192,
    "zero_requests": 1,
    "zero_bytes": 4096,
    "discard_requests": 0,
    "discard_bytes": 0,
    "punch_requests": 1,
    "punch_bytes": 8192,
    "flushes": 3,
}


class RecordingError(Exception):
    """Fake of the native module's error."""


class PanicException(BaseException):
    """Fake of pyo3's exception for a panic; like that one, it is not an `Exception`."""


@dataclass
class FakeExplanation:
    """Fake explanation of a recording without a file system, packed unless there is an error."""

    pack_error: str

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(())

    def check_packed(self) -> None:
        if self.pack_error:
            raise RecordingError(self.pack_error)

    def phases(self) -> list[str]:
        return []

    def families(self) -> list[str | None]:
        return [None]

    def marks(self) -> list[tuple[int, str, str | None]]:
        return []

    def punched_bytes(self) -> dict[str, int]:
        return {}


@dataclass
class FakeNative:
    """Fake native module whose recordings exist only as numbers. `error` is raised by reading one,
    `panic` by explaining one."""

    intervals: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    pack_error: str = ""
    panic: str = ""

    def module(self) -> SimpleNamespace:
        fake = self

        class Recording:
            def __init__(self, path: str) -> None:
                if fake.error:
                    raise RecordingError(fake.error)

            def info(self) -> dict[str, Any]:
                return {"disks": [{"name": "main"}], "end": "finished", "begin_unix_ns": 1}

            def intervals(self) -> list[dict[str, Any]]:
                return fake.intervals

            def marks(self) -> list[tuple[int, str, str | None]]:
                return []

            def explain(self) -> Any:
                if fake.panic:
                    raise PanicException(fake.panic)
                return FakeExplanation(fake.pack_error)

            def explain_and_pack(self, descriptor: int, path: str, level: int) -> Any:
                explanation = self.explain()
                os.write(descriptor, b"packed")
                return explanation

            def requests(self) -> "Requests":
                return Requests()

        class Requests:
            """One batch, and the intervals counted during the iteration."""

            def __iter__(self) -> Iterator[pa.RecordBatch]:
                numbers = pa.array([0, 4096], pa.uint64())
                wide = ("event", "submit_ns", "complete_ns", "offset", "length")
                disk = pa.array(["main", "main"]).dictionary_encode()
                op = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), ["write"])
                fua = pa.array([False, True])
                replies = dict.fromkeys(("latency_ns", "late_ns"), pa.nulls(2, pa.uint64()))
                columns = dict.fromkeys(wide, numbers) | {"disk": disk, "op": op, "fua": fua}
                names = ("event", "submit_ns", "complete_ns", "disk", "op", "offset", "length")
                ordered = {name: columns[name] for name in (*names, "fua")}
                yield pa.record_batch(ordered | replies)

            def intervals(self) -> list[dict[str, Any]]:
                return fake.intervals

        return SimpleNamespace(
            Recording=Recording,
            RecordingError=RecordingError,
            PanicException=PanicException,
            structures=list,
        )


def interval_event(
    name: str, measured: bool, disks: tuple[str, ...] = ("main",), **changes: Any
) -> dict[str, Any]:
    """Return an agent's event for one interval."""
    return {
        "event": "interval",
        "name": name,
        "measured": measured,
        "wall_ns": 3_000_000_000,
        "command_ns": 2_000_000_000,
        "settle_ns": 1_000_000_000,
        "cpu_user_ns": 100_000_000,
        "cpu_system_ns": 200_000_000,
        "cpu_kernel_threads_ns": 300_000_000,
        "cpu_disk_server_ns": 400_000_000,
        "program_write_bytes": 6144,
        "program_read_bytes": 10,
        "space_used_bytes": 1 << 20,
        "space_taken_bytes": 7 << 20,
        "space_overhead_bytes": 4 << 20,
        "space_reserved_bytes": 2 << 20,
        "metadata_used_bytes": None,
        "sync_calls": None,
        "sync_times_ns": None,
        "probe": None,
        "counters": {disk: dict(COUNTERS) for disk in disks},
        "settle_write_bytes": {},
        "unmount_write_bytes": {},
    } | changes


@dataclass
class Stage:
    """A fake agent's script and the lab that runs it."""

    folder: Path
    cell: Cell
    options: LabOptions
    lab: NativeLab
    native: FakeNative
    steps: list[str] = field(default_factory=list)

    def good_events(self) -> list[dict[str, Any]]:
        """Return the events of a complete cell without faults."""
        disks = tuple(disk.name for disk in self.cell.profile.disks)
        queue = {"logical_block_size": 512}
        events: list[dict[str, Any]] = [
            {"event": "attached", "disk": disk, "device": "/dev/loop9", "queue": queue}
            for disk in disks
        ]
        events.append(interval_event("mkfs", False, disks, space_used_bytes=None))
        mount = {
            "mountinfo": "36 1 7:0 / /mnt/fs rw - ext4 /dev/loop9 rw",
            "options": "rw",
            "super_options": "rw",
            "type": "ext4",
        }
        events.append({"event": "mounted"} | mount)
        events.append(interval_event("mount", False, disks))
        events.append(
            {"event": "inspected", "name": "superblock", "output": "features: has_journal"}
        )
        events += [
            interval_event(step.name, step.measured, disks) for step in self.cell.workload.steps
        ]
        events.append({"event": "done", "recording": {"requests": 12}})
        return events

    def say(self, events: list[dict[str, Any]] | bytes, then: str = "0") -> None:
        """Set the agent's output, and its action afterwards."""
        if not isinstance(events, bytes):
            events = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        (self.folder / "events").write_bytes(events)
        (self.folder / "then").write_text(then)

    def record(self) -> None:
        """Make the recording agree with the events, and create its file."""
        disks = [disk.name for disk in self.cell.profile.disks]
        names = [
            "before",
            "mkfs",
            "mount",
            *(step.name for step in self.cell.workload.steps),
            "end",
        ]
        self.native.intervals = [
            {
                "name": name,
                "begin_ns": number,
                "end_ns": number + 1,
                "disks": {disk: dict(TOTALS) for disk in disks},
                "detail": None,
            }
            | {"first_write_bytes": 0}
            for number, name in enumerate(names)
        ]
        # Another program reads the new device before the first mark, which the kernel counts into
        # mkfs, and again after the last mark.
        before, mkfs, *_, after = self.native.intervals
        before["disks"] = {disk: dict.fromkeys(TOTALS, 0) | {"read_bytes": 1024} for disk in disks}
        mkfs["disks"] = {disk: TOTALS | {"read_bytes": 3072} for disk in disks}
        after["disks"] = {disk: dict.fromkeys(TOTALS, 0) | {"read_bytes": 4096} for disk in disks}
        self.recording.parent.mkdir(exist_ok=True)
        self.recording.write_bytes(b"recording")

    @property
    def recording(self) -> Path:
        return self.options.cell_dir / "recording.fscost"

    def run(self) -> CellResult:
        return self.lab.run(self.cell, self.options, self.steps.append)

    def measure(self, keep: bool) -> CellResult:
        return measure(self.lab, Task(self.cell, self.options, keep), self.steps.append)

    def plan(self) -> dict[str, Any]:
        """Return the plan that the agent received."""
        result: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())
        return result


def plan_format(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
    return FormatPlan(
        mkfs=(("mkfs.ext4", "-q", *profile.mkfs_flags, "{disk.main}"),),
        mount_type="ext4",
        mount_device="{disk.main}",
        mount_options=profile.mount_options,
        after_mount=profile.after_mount,
        inspect=(("superblock", ("dumpe2fs", "-h", "{disk.main}")),),
        needs_tools=("sh",),
    )


def make_cell(disks: tuple[str, ...] = ("main",), **changes: Any) -> Cell:
    profile = Profile("ext4", "ext4", disks=tuple(DiskSpec(disk) for disk in disks))
    steps = (
        Step("unpack", "tar xf {input}/a.tar", measured=False),
        Step("build", "make -C {dir}", env=(("JOBS", "2"),)),
    )
    workload = Workload("mine", steps, disk_bytes=1 << 20, **changes)
    return Cell(profile, workload, repetition=0, seed=7, order=0)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Stage:
    """Return a stage with one disk, two steps, and an agent without output yet. A marker parameter
    names other disks."""
    disks: tuple[str, ...] = getattr(request, "param", ("main",))
    native = FakeNative()
    monkeypatch.setattr(fscost, "_native", native.module(), raising=False)
    agent = tmp_path / "fscost-agent"
    agent.write_text(
        f"#!/bin/sh\nFSCOST_FAKE={tmp_path} exec {sys.executable} -S"
        f' {Path(__file__).with_name("fake_agent.py")} "$@"\n'
    )
    agent.chmod(0o755)
    lab = NativeLab(Binaries(agent, Path("/opt/fscost-disk")), plan_format=plan_format)
    options = LabOptions(cell_dir=tmp_path / "cell", disk_size_bytes=1 << 30)
    return Stage(tmp_path, make_cell(disks), options, lab, native)
