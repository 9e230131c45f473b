"""Jobs for fio, and the parsing of its results."""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscost import host
from fscost.errors import HostError

SMALL_BYTES, LARGE_BYTES = 4096, 1 << 20
DEEP = 32
_MARGIN_S = 60


@dataclass(frozen=True)
class Job:
    """One measurement. `first` and `share`: start and length of the measured part, as fractions of
    the device's size."""

    name: str
    rw: str
    depth: int
    block_bytes: int
    first: float = 0
    share: float = 1
    """0 means one block."""
    is_synced: bool = False
    is_settled: bool = False
    """Exclude the first half of the time, in which caches fill."""

    @property
    def writes(self) -> bool:
        """True if the job changes the device."""
        return "read" not in self.rw


@dataclass(frozen=True)
class Answer:
    """Results of fio: latencies of the requests, and of the syncs after them."""

    median_us: float
    mean_us: float
    bytes_per_s: float
    sync_median_us: float = 0


SHORT_SHARE = 0.01
READS = (
    Job("random-read", "randread", 1, SMALL_BYTES),
    Job("sequential-read", "read", 8, LARGE_BYTES),
)
OF_FLASH = (*READS, Job("deep-random-read", "randread", DEEP, SMALL_BYTES))
OF_HARD_DISKS = (
    Job("random-read", "randread", 1, SMALL_BYTES),
    Job("short-random-read", "randread", 1, SMALL_BYTES, share=SHORT_SHARE),
    Job("same-read", "read", 1, SMALL_BYTES, share=0),
    Job("outer-read", "read", 8, LARGE_BYTES, share=0.02),
    Job("inner-read", "read", 8, LARGE_BYTES, first=0.98, share=0.02),
)
WRITES = (
    Job("random-write", "randwrite", 1, SMALL_BYTES),
    Job("synced-write", "randwrite", 1, SMALL_BYTES, is_synced=True),
    Job("sequential-write", "write", 8, LARGE_BYTES, is_settled=True),
    Job("discard", "randtrim", 1, LARGE_BYTES),
)
"""Write jobs for flash devices. Only the last may fail, because not every device supports
discards."""


def commands(jobs: Sequence[Job], device: Path, size_bytes: int, seconds: float) -> list[str]:
    """Return every command that `measure` runs, as shell text."""
    return [shlex.join(_command("fio", job, device, size_bytes, seconds)) for job in jobs]


def measure(
    jobs: Sequence[Job],
    device: Path,
    size_bytes: int,
    seconds: float,
    on_job: Callable[[str], None],
) -> dict[str, Answer]:
    """Run each job; return the answers by name. A discard job that the device refuses has no
    answer."""
    fio = host.tool("fio")
    if fio is None:
        raise HostError("fio is missing", f"`{host.install_command(['fio'])}`")
    found = {}
    for job in jobs:
        on_job(job.name)
        command = _command(str(fio), job, device, size_bytes, seconds)
        limit_s = seconds * 2 + _MARGIN_S
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            raise HostError(
                f"fio job {job.name} on {device} did not end within {limit_s:g} s",
                "look at the kernel log for errors of the device",
            ) from None
        if ended.returncode != 0:
            if "trim" in job.rw:
                continue
            said = (ended.stderr or ended.stdout).strip().splitlines()
            raise HostError(
                f"fio job {job.name} failed on {device}: {said[0] if said else 'no message'}",
                f"try it alone: {shlex.join(command)}",
            )
        found[job.name] = _answer(job, ended.stdout)
    return found


def version() -> str:
    """Return fio's version."""
    fio = host.tool("fio")
    if fio is None:
        return "fio"
    told = subprocess.run([fio, "--version"], capture_output=True, text=True, check=False)
    return told.stdout.strip().replace("-", " ") or "fio"


def _command(fio: str, job: Job, device: Path, size_bytes: int, seconds: float) -> list[str]:
    # fio truncates fractions of seconds.
    milliseconds = f"{round(seconds * 1000)}ms"
    begin = int(size_bytes * job.first) // LARGE_BYTES * LARGE_BYTES
    length = int(size_bytes * job.share) // LARGE_BYTES * LARGE_BYTES
    # A part smaller than one large block is extended to one.
    length = max(length, LARGE_BYTES) if job.share else job.block_bytes
    begin = max(0, min(begin, size_bytes - length))
    # fio separates several files by colons.
    file = str(device).replace(":", "\\:")
    words = [fio, f"--name={job.name}", f"--filename={file}", f"--rw={job.rw}"]
    words += [f"--bs={job.block_bytes}", f"--iodepth={job.depth}", f"--offset={begin}"]
    words += [f"--size={length}", "--direct=1", "--time_based=1", "--norandommap=1"]
    words += ["--ioengine=libaio" if job.depth > 1 else "--ioengine=psync", "--randseed=1"]
    words += ["--lat_percentiles=1", "--output-format=json", f"--runtime={milliseconds}"]
    # fio starts each job as a process in a session of its own, which outlives it if it is killed.
    words += ["--allow_file_create=0", "--thread=1"]
    if job.is_settled:
        words.append(f"--ramp_time={milliseconds}")
    if job.is_synced:
        words.append("--fdatasync=1")
    return words if job.writes else [*words, "--readonly"]


def _answer(job: Job, text: str) -> Answer:
    try:
        # Warnings may precede the JSON.
        found = json.loads(text[text.index("{") :])["jobs"][0]
        of = "trim" if "trim" in job.rw else "write" if job.writes else "read"
        latency = found[of]["lat_ns"]
        if not latency.get("percentile"):
            raise ValueError(f"no request completed in {found['job_runtime']} ms")
        return Answer(
            _median_us(latency),
            latency["mean"] / 1e3,
            float(found[of]["bw_bytes"]),
            _median_us(found["sync"]["lat_ns"]) if job.is_synced else 0,
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise HostError(
            f"the output of fio job {job.name} cannot be used: {error}",
            "give it more time with --seconds",
        ) from None


def _median_us(latency: Mapping[str, Any]) -> float:
    return float(latency["percentile"]["50.000000"]) / 1e3
