"""Limits of untrusted input (docs/limits.md): the largest input that is accepted needs bounded
memory, and a larger one is refused with one error."""

import gzip
import json
import resource
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import recordings
from tests.manifests import made
from tests.recordings import EVENTS_PER_FRAME, Body, event, mark
from tests.variants import some

from fscost.results import SAMPLES, SCHEMA

from .conftest import PROGRAM, Ended

KIB, MIB = 1 << 10, 1 << 20
PROGRAM_BYTES = 160 * MIB
"""Private memory of the program and its libraries, before it reads anything."""
FLUSHES = Body([event(recordings.FLUSH)] * EVENTS_PER_FRAME)
END = (1, mark("end"))
LINE = b"128166372003061629,mds,0,Write,4096,4096,1\n"
VALUES = {pa.string(): "x", pa.bool_(): True, pa.float64(): 1.0, pa.int64(): 1}
REPLAY = ("--disk", "disk0=hdd-7200")


@dataclass(frozen=True)
class Limit:
    """`make` writes the largest input that is accepted, or one that is larger, and returns the
    arguments. `says` is the error about the larger one, `most_bytes` the memory for the other."""

    make: Callable[[Path, bool], tuple[str, ...]]
    says: str
    most_bytes: int
    codes: tuple[int, ...] = (0,)
    """Exit codes of the largest input. Content that fills a file up to its limit may be refused for
    another reason."""


def marks(folder: Path, is_over: bool) -> tuple[str, ...]:
    long = mark("step", "x" * (256 * KIB - 40))
    path = recordings.write(folder / "r", [(33 if is_over else 31, long), END])
    return "recording", "info", str(path)


def disks(folder: Path, is_over: bool) -> tuple[str, ...]:
    path = recordings.write(folder / "r", [(1, FLUSHES), END], disks=65 if is_over else 64)
    return "explain", str(path)


def replayed(folder: Path, is_over: bool) -> tuple[str, ...]:
    bodies = [(8192 if is_over else 8191, FLUSHES), END]
    return "replay", str(recordings.write(folder / "r", bodies)), *REPLAY


def replayed_trace(folder: Path, is_over: bool) -> tuple[str, ...]:
    """Members of a gzip file follow each other without a limit: 2 MB for 32 million requests."""
    member = gzip.compress(LINE * MIB, 9)
    (folder / "t.gz").write_bytes(member * 32 + gzip.compress(LINE * is_over))
    return "replay", str(folder / "t.gz"), "--disk", "mds_0=hdd-7200"


def worn_trace(folder: Path, is_over: bool) -> tuple[str, ...]:
    member = gzip.compress(LINE * MIB, 9)
    (folder / "t.gz").write_bytes(member * 64 + gzip.compress(LINE * is_over))
    return "wear", str(folder / "t.gz"), "--ssd", "nvme"


def line(folder: Path, is_over: bool) -> tuple[str, ...]:
    name = "x" * 4000
    text = f"128166372003061629,{name},0,Write,4096,4096,1\n"
    (folder / "t.csv").write_text(f"{text}{'x' * (64 * KIB + 1)}\n" if is_over else text)
    return "wear", str(folder / "t.csv"), "--ssd", "nvme", "--format", "msr"


def manifest(folder: Path, is_over: bool) -> tuple[str, ...]:
    filling = "[]," * (8_000_000 - 1 + is_over)
    (folder / "manifest.json").write_text(f"[{filling}1]")
    return "show", str(folder)


def samples(folder: Path, is_over: bool) -> tuple[str, ...]:
    """Claim a table of one row too many: a column of one value takes no space."""
    rows = 4_000_000 + is_over
    (folder / "manifest.json").write_text(json.dumps(made().to_json()))
    values = {
        field.name: pa.repeat(pa.scalar(VALUES[field.type], field.type), rows) for field in SCHEMA
    }
    table = pa.table(values, schema=SCHEMA)
    pq.write_table(table, folder / SAMPLES, compression="zstd")
    return "show", str(folder)


def now(folder: Path, is_over: bool) -> tuple[str, ...]:
    (folder / "t.csv").write_bytes(LINE)
    filling = "[]," * ((4 * MIB + 9 * is_over - 8) // 3)
    (folder / "now.json").write_text(f"[{filling}1]")
    return "wear", str(folder / "t.csv"), "--ssd", "nvme", "--now", str(folder / "now.json")


def device(folder: Path, is_over: bool) -> tuple[str, ...]:
    """Fill a file with the tables that take tomllib the most memory."""
    parts = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o"
    tables = "".join(f"[{number}.{parts}]\n{parts}.p=1\n" for number in range(20_000))
    (folder / "d.toml").write_text(tables[: MIB + is_over])
    (folder / "t.csv").write_bytes(LINE)
    return "wear", str(folder / "t.csv"), "--ssd", str(folder / "d.toml")


def key(folder: Path, is_over: bool) -> tuple[str, ...]:
    """tomllib's memory grows with the square of the parts: 32,000 of them took 3.9 GB."""
    parts = [r'"\""'] * (8000 if is_over else 16)
    (folder / "d.toml").write_text(f"{'.'.join(parts)} = 1\n")
    return "devices", str(folder / "d.toml")


def suite(folder: Path, is_over: bool) -> tuple[str, ...]:
    (folder / "s.toml").write_text("version = 1\n".ljust(MIB + is_over, "#"))
    return "run", str(folder / "s.toml"), "--dry-run"


def workloads(folder: Path, is_over: bool) -> tuple[str, ...]:
    entries = (f'[workloads.w{number}]\ncommand = "x"\n' for number in range(256 + is_over))
    (folder / "s.toml").write_text("version = 1\nprofiles = ['ext4']\n" + "".join(entries))
    return "run", str(folder / "s.toml"), "--dry-run"


def profiles(folder: Path, is_over: bool) -> tuple[str, ...]:
    """Several spellings count together."""
    choices = [f"ext4 -o commit={{{','.join(map(str, range(1, 251)))}}}"] * 4
    text = ", ".join(map(repr, [*choices, *["xfs"] * is_over]))
    (folder / "s.toml").write_text(
        f"version = 1\nprofiles = [{text}]\n[workloads.w]\ncommand = 'x'\n"
    )
    return "run", str(folder / "s.toml"), "--dry-run"


LIMITS = {
    "marks": Limit(marks, "more than 8 MiB of marks", 100 * MIB),
    "disks": Limit(disks, "the number of disks is 65, not 1 to 64", 300 * MIB),
    "requests to replay": Limit(replayed, "and at most 33554432 can be replayed", 5600 * MIB),
    "line": Limit(line, "line 2: the line is longer than 65536 bytes", 300 * MIB),
    "manifest": Limit(manifest, "more than 16,000,000 values", 3000 * MIB, (2,)),
    "samples": Limit(samples, "claims 4000001 samples", 1100 * MIB, (0, 2)),
    "counters": Limit(now, "larger than 4 MiB", 300 * MIB, (2,)),
    "device": Limit(device, "larger than 1 MiB", 400 * MIB, (2,)),
    "key": Limit(key, "a dotted key of more than 16 parts", 100 * MIB, (2,)),
    "suite": Limit(suite, "larger than 1 MiB", 100 * MIB, (2,)),
    "workloads": Limit(workloads, "workloads has more than 256 entries", 300 * MIB),
    "profiles": Limit(profiles, "the profiles expand to more than 1000", 300 * MIB, (0, 2)),
}
READ_FIRST = {
    "requests of a trace": Limit(replayed_trace, "more than 33554432 requests", 5600 * MIB),
    "requests of a trace on an SSD": Limit(worn_trace, "more than 67108864 requests", 2600 * MIB),
}
"""Limits that are known only after most of the input was read, which takes long."""


def started(limit: Limit, arguments: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """Run the program with no more private memory than the limit allows."""
    most = PROGRAM_BYTES + limit.most_bytes

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, preexec_fn=bound, check=False
    )


@pytest.mark.parametrize(
    "name", [*LIMITS, *(pytest.param(each, marks=pytest.mark.long) for each in READ_FIRST)]
)
def test_a_larger_input_is_refused(fscost: Callable[..., Ended], tmp_path: Path, name: str) -> None:
    limit = (LIMITS | READ_FIRST)[name]
    ended = fscost(*limit.make(tmp_path, True), check=(2,))
    [cause, remedy] = ended.stderr.splitlines()
    assert limit.says in cause
    assert remedy.startswith("  ")


@pytest.mark.parametrize(
    "name",
    some([*LIMITS, *READ_FIRST], 2, key="limits"),
)
def test_the_largest_input_needs_bounded_memory(tmp_path: Path, name: str) -> None:
    limit = (LIMITS | READ_FIRST)[name]
    ended = started(limit, limit.make(tmp_path, False))
    assert ended.returncode in limit.codes, ended.stderr
    assert limit.says not in ended.stderr
    # Where memory ends, Python may also report an error without a cause.
    assert "memory" not in ended.stderr
    assert "defect" not in ended.stderr


@pytest.mark.parametrize(
    ("more", "says"), [(0, "4.00 TiB in all, written 2.00 times"), (4096, "is unknown")]
)
def test_places_that_a_trace_writes_need_bounded_memory(
    tmp_path: Path, more: int, says: str
) -> None:
    def writes(folder: Path, _: bool) -> tuple[str, ...]:
        lines = (f"128166372003061629,mds,0,Write,0,{(4 << 40) + more},1\n" for _ in range(2))
        (folder / "t.csv").write_text("".join(lines))
        return "explain", str(folder / "t.csv")

    limit = Limit(writes, "", 430 * MIB)
    ended = started(limit, limit.make(tmp_path, False))
    assert ended.returncode == 0, ended.stderr
    assert says in " ".join(ended.stdout.split())
