"""The native front ends. The same test runs over FUSE with a loop device, here, and over ublk, in a
guest whose kernel supports it."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.front_end import guest

from fscost import capture, profile
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell.binaries import Binaries, find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

WORK = Path(__file__).with_name("work.py")
ROOT = Path(__file__).parents[2]
KIB = 1 << 10
MIB = 1 << 20
Row = tuple[str, int, int, bool]


@dataclass
class Told:
    """The kernel's view of a front end, and the recording of the work."""

    queue: dict[str, str]
    kernel: list[int]
    latencies_ns: list[tuple[str, int | None]]
    left: list[str]
    rows: list[Row]


def here(out: Path, _: Path) -> str:
    words = [sys.executable, str(WORK), str(find_binaries().disk), "fuse", str(out)]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout


def in_guest(out: Path, work: Path) -> str:
    words = ["python3", str(WORK), str(find_binaries().disk.resolve()), "ublk", str(out)]
    return guest.run(shlex.join(words), out, work)


def ran(tmp_path: Path, run: Callable[[Path, Path], str]) -> Told:
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    said: dict[str, Any] = json.loads(run(out, work).strip().splitlines()[-1])
    requests = tmp_path / "requests.parquet"
    _, intervals = capture.write_requests(out / "recording", requests)
    [interval] = [each for each in intervals if each.name == "work"]
    table = pq.read_table(requests)
    table = table.filter(pc.greater_equal(table["submit_ns"], interval.begin_ns))
    rows = [(row["op"], row["offset"], row["length"], row["fua"]) for row in table.to_pylist()]
    batches = capture.requests(out / "modelled" / "recording")
    latencies_ns = [
        (row["op"], row["latency_ns"])
        for batch in batches
        for row in batch.to_pylist()
        if not row["fua"]
    ]
    return Told(said["queue"], said["kernel"], latencies_ns, said["left"], rows)


@pytest.mark.root
def test_fuse(tmp_path: Path) -> None:
    told = ran(tmp_path, here)
    assert told.queue["physical_block_size"] == "512"
    assert told.queue["fua"] == "0"
    # A loop device punches a hole for a discard and for zeroes that may unmap. It sends a forced
    # write as a write and a flush.
    assert_the_work(told, discard="punch", zeroes="write_zeroes", forced=False)


@pytest.mark.root
@pytest.mark.guest
@pytest.mark.slow
def test_ublk(tmp_path: Path) -> None:
    told = ran(tmp_path, in_guest)
    assert told.queue["logical_block_size"] == "512"
    assert told.queue["physical_block_size"] == "4096"
    assert told.queue["fua"] == "1"
    assert told.queue["write_cache"] == "write back"
    assert_the_work(told, discard="discard", zeroes="write_zeroes", forced=True)
    assert told.left == []


def cell_done(tmp_path: Path, binaries: Binaries) -> CellResult:
    step = Step("work", "dd if=/dev/zero of=file bs=64k count=16 conv=fsync status=none; mkdir d")
    cell = Cell(profile.resolve("ext4"), Workload("mine", (step,), disk_bytes=MIB), 0, 7, 0)
    options = LabOptions(tmp_path, disk_size_bytes=64 * MIB)
    result = NativeLab(binaries).run(cell, options, lambda _: None)
    assert result.status == "done", f"{result.kind}: {result.because}"
    return result


@pytest.mark.root
@pytest.mark.guest
@pytest.mark.slow
def test_a_cell_over_ublk(tmp_path: Path) -> None:
    """The agent uses ublk where it is available. The lab has compared the recording with the
    kernel's counters, and the work reads and writes the same as over FUSE."""
    rooms = [tmp_path / name for name in ("fuse", "ublk")]
    for room in rooms:
        room.mkdir()
    real = find_binaries()
    shim = tmp_path / "agent"
    words = [sys.executable, "-m", "tests.front_end.agent_in_guest"]
    words += [str(real.agent.resolve()), str(rooms[1])]
    shim.write_text(f"#!/bin/sh\ncd {ROOT} && exec {shlex.join(words)}\n")
    shim.chmod(0o755)
    over_fuse = cell_done(rooms[0], real)
    over_ublk = cell_done(rooms[1], Binaries(shim, real.disk.resolve()))
    assert over_ublk.facts["disks"]["main"]["device"] == "/dev/ublkb0", over_ublk.facts
    metrics = ("program_write_bytes", "device_discard_bytes")
    assert [value(over_fuse, name) for name in metrics] == [
        value(over_ublk, name) for name in metrics
    ]


def value(result: CellResult, metric: str) -> list[float]:
    return [each.value for each in result.samples if (each.phase, each.metric) == ("work", metric)]


def assert_the_work(told: Told, discard: str, zeroes: str, forced: bool) -> None:
    rows = told.rows
    # FUSE may split a write in two.
    written = [row for row in rows if row[0] == "write"]
    assert sum(row[2] for row in written) == MIB + 4 * KIB + 512 + 8 * KIB
    assert ("write", 4 * MIB, 8 * KIB, forced) in written
    assert [row[1] for row in written if row[3]] == ([4 * MIB] if forced else [])
    assert (discard, 256 * KIB, 64 * KIB, False) in rows
    assert (zeroes, 512 * KIB, 128 * KIB, False) in rows
    flushes = sum(row[0] == "flush" for row in rows)
    # The forced write is one call more, because the kernel flushes after it in any case.
    assert flushes == (2 if forced else 3)
    assert sum(row[2] for row in rows if row[0] == "read") == 320 * KIB + 256 * KIB + KIB + 8 * KIB
    # The kernel's own totals (Documentation/block/stat.rst): sectors read, written and discarded.
    of = {"read": told.kernel[2], "write": told.kernel[6], "discard": told.kernel[13]}
    assert of["read"] * 512 == sum(row[2] for row in rows if row[0] == "read")
    moved = sum(row[2] for row in rows if row[0] not in ("read", "flush"))
    assert (of["write"] + of["discard"]) * 512 == moved
    assert told.kernel[15] == flushes
    # On a disk with a model, each request takes its time. A reply before that could not be read.
    assert len(told.latencies_ns) > 10
    timed = {each for each in told.latencies_ns if each[0] in ("read", "write")}
    assert timed == {("read", 900_000), ("write", 2_000_000)}
