"""Speed of reading traces of other tools, in million lines a second of one core's CPU time.

    benches/traces.py [FORMAT …]        (default: all)

Each trace is made here from the same random requests, with as many digits as published traces have,
and is in the page cache. blkparse and blktrace have five events for each request (Q, G, I, D, C),
as the kernel records them. The clock is the thread's CPU time, the best of several runs, because
machines are shared. Records of blktrace and entries of dm-log-writes count as lines.
"""

import argparse
import os
import random
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import history  # beside this file
from wear import build

BUDGET_LINES_PER_S = 5e6
LINES = 4_000_000
CHUNK_LINES = 200_000
"""Number of lines generated; a file repeats them."""
RUNS = 5
SECTOR_BYTES = 512


class Request(NamedTuple):
    """One request of the trace that all files hold."""

    time_ns: int
    is_write: bool
    offset_bytes: int
    length_bytes: int


def requests(count: int) -> Iterator[Request]:
    """Yield requests of 4 to 64 KiB on a disk of 1 TB, some microseconds apart."""
    draw = random.Random(12)
    time_ns = 0
    for _ in range(count):
        time_ns += draw.randrange(1000, 400_000)
        length_bytes = draw.choice((4096, 4096, 4096, 8192, 16384, 65536))
        yield Request(time_ns, draw.random() < 0.7, draw.randrange(1 << 28) * 4096, length_bytes)


def blkparse(count: int) -> bytes:
    """Return five events for each request, in blkparse's default format."""
    lines = []
    for number, each in enumerate(requests(count // 5)):
        rwbs = "WS" if each.is_write else "R"
        place = f"{each.offset_bytes // SECTOR_BYTES} + {each.length_bytes // SECTOR_BYTES}"
        for step, action in enumerate("QGIDC"):
            time_ns = each.time_ns + step * 1000
            who = "[0]" if action == "C" else "[kworker/u8:2]"
            time = f"{time_ns // 10**9:5d}.{time_ns % 10**9:09d}"
            head = f"  8,0  {number % 8:3d} {5 * number + step + 1:8d} {time} {697:5d}"
            lines.append(f"{head} {action:>2s} {rwbs:>3s} {place} {who}\n")
    return "".join(lines).encode()


def blktrace(count: int) -> bytes:
    """Return five records for each request: struct blk_io_trace of
    include/uapi/linux/blktrace_api.h."""
    actions = ((1, 1 << 4), (4, 0), (5, 0), (7, 1 << 6), (8, 1 << 7))
    records = []
    for number, each in enumerate(requests(count // 5)):
        direction = 1 << 1 if each.is_write else 1
        for step, (action, category) in enumerate(actions):
            what = action | (direction | category) << 16
            sector, time_ns = each.offset_bytes // SECTOR_BYTES, each.time_ns + step * 1000
            begin = (0x65617407, 5 * number + step + 1, time_ns, sector, each.length_bytes)
            records.append(struct.pack("<IIQQIIIIIHH", *begin, what, 697, 8 << 20, 0, 0, 0))
    return b"".join(records)


def msr(count: int) -> bytes:
    """Return lines with times in units of 100 ns since 1601."""
    names = ("Read", "Write")
    lines = (
        f"{128166372003061629 + each.time_ns // 100},usr,0,{names[each.is_write]},"
        f"{each.offset_bytes},{each.length_bytes},{each.time_ns % 90000}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def fio_action(each: Request) -> str:
    """Return action, offset and length."""
    return f"{'write' if each.is_write else 'read'} {each.offset_bytes} {each.length_bytes}"


def fio_version_2(count: int) -> bytes:
    """Return lines with a wait before every second request."""
    lines: list[str] = []
    for each in requests(count * 2 // 3):
        if len(lines) % 3 == 0:
            lines.append(f"/dev/sda wait {each.time_ns % 400} 0\n")
        lines.append(f"/dev/sda {fio_action(each)}\n")
    return "".join(lines).encode()


def fio_version_3(count: int) -> bytes:
    """Return lines with microseconds since the start."""
    lines = (f"{each.time_ns // 1000} /dev/sda {fio_action(each)}\n" for each in requests(count))
    return "".join(lines).encode()


def systor17(count: int) -> bytes:
    """Return lines with seconds of nine decimals, of which six are exact."""
    lines = []
    for number, each in enumerate(requests(count)):
        time_us = 1456095145133076 + each.time_ns // 1000
        time = f"{time_us // 10**6}.{time_us % 10**6:06d}000"
        begin = f"{time},0.{each.time_ns % 9000:06d}000,{'RW'[each.is_write]},{number % 6}"
        lines.append(f"{begin},{each.offset_bytes},{each.length_bytes}\n")
    return "".join(lines).encode()


def alibaba(count: int) -> bytes:
    """Return lines of a few devices, interleaved."""
    lines = (
        f"{each.time_ns % 97},{'RW'[each.is_write]},{each.offset_bytes},{each.length_bytes},"
        f"{1577808000000046 + each.time_ns // 1000}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def tencent(count: int) -> bytes:
    """Return lines of volumes, interleaved as in the published files."""
    lines = (
        f"{1538323199 + each.time_ns // 10**9},{each.offset_bytes // SECTOR_BYTES},"
        f"{each.length_bytes // SECTOR_BYTES},"
        f"{each.is_write:d},{1063 + each.time_ns % 5584}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def spc(count: int) -> bytes:
    """Return lines of a few application units, interleaved."""
    lines = (
        f"{each.time_ns % 24},{each.offset_bytes // SECTOR_BYTES},{each.length_bytes},"
        f"{'rw'[each.is_write]},{each.time_ns / 1e9:.6f}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def fiu(count: int) -> bytes:
    """Return lines with a hash of the content, which the reader passes over."""
    lines = (
        f"{89968195792462 + each.time_ns} 20782 gzip {each.offset_bytes // SECTOR_BYTES}"
        f" {each.length_bytes // SECTOR_BYTES} {'RW'[each.is_write]} 6 0"
        " 56f11b711d91a065a2b6458eca924523\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def disksim(count: int) -> bytes:
    """Return lines with times in milliseconds."""
    lines = (
        f"{each.time_ns / 1e6:.6f} 0 {each.offset_bytes // SECTOR_BYTES}"
        f" {each.length_bytes // SECTOR_BYTES} {not each.is_write:d}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def mqsim(count: int) -> bytes:
    """Return lines with times in nanoseconds."""
    lines = (
        f"{each.time_ns} 1 {each.offset_bytes // SECTOR_BYTES}"
        f" {each.length_bytes // SECTOR_BYTES} {not each.is_write:d}\n"
        for each in requests(count)
    )
    return "".join(lines).encode()


def dm_log_writes(count: int) -> bytes:
    """Return entries of discards, which have no data, between writes of one sector."""
    entries = []
    for each in requests(count):
        sectors = 1 if each.is_write else each.length_bytes // SECTOR_BYTES
        entry = struct.pack(
            "<QQQQ", each.offset_bytes // SECTOR_BYTES, sectors, 0 if each.is_write else 4, 0
        )
        entries.append(entry.ljust(SECTOR_BYTES * (2 if each.is_write else 1), b"\0"))
    return b"".join(entries)


class Kind(NamedTuple):
    """Generator of a trace, the beginning of its file, and its number of lines."""

    lines: Callable[[int], bytes]
    header: Callable[[int], bytes] = lambda _: b""
    lines_count: int = LINES


LOG_ENTRIES = 1_000_000


def log_superblock(count: int) -> bytes:
    """Return the superblock of a log of dm-log-writes with this number of entries."""
    return struct.pack("<QQQI", 0x6A736677736872, 1, count, SECTOR_BYTES).ljust(SECTOR_BYTES, b"\0")


KINDS = {
    "blkparse": Kind(blkparse),
    "blktrace": Kind(blktrace),
    "msr": Kind(msr),
    "fio-2": Kind(fio_version_2, lambda _: b"fio version 2 iolog\n"),
    "fio-3": Kind(fio_version_3, lambda _: b"fio version 3 iolog\n"),
    "systor17": Kind(systor17, lambda _: b"Timestamp,Response,IOType,LUN,Offset,Size\n"),
    "alibaba": Kind(alibaba),
    "tencent": Kind(tencent),
    "spc": Kind(spc),
    "fiu": Kind(fiu),
    "disksim": Kind(disksim),
    "mqsim": Kind(mqsim),
    "dm-log-writes": Kind(dm_log_writes, log_superblock, LOG_ENTRIES),
}


def make(kind: Kind, chunks: int, path: Path) -> None:
    """Write the chunk repeatedly, so that page cache and branch predictor see more than one chunk
    of lines."""
    chunk = kind.lines(CHUNK_LINES)
    with path.open("wb") as out:
        out.write(kind.header(chunks * CHUNK_LINES))
        for _ in range(chunks):
            out.write(chunk)


def read(program: Path, path: Path) -> tuple[int, float]:
    """Return the number of requests, and the least CPU seconds of several runs."""
    runs = [
        subprocess.run([program, path], check=True, capture_output=True, text=True).stdout.split()
        for _ in range(RUNS)
    ]
    return int(runs[0][1]), min(float(run[3]) for run in runs)


def main() -> None:
    """Print the table; exit 1 if the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(KINDS)}; all unless given"
    )
    parser.add_argument("--chunks", type=int, help=f"{CHUNK_LINES:,} lines each in a trace")
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    asked = parser.parse_args()
    names = asked.formats or list(KINDS)
    program = build("fscost-traces") / "read_speed"
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; best of {RUNS} runs")
    print(f"{'':15}{'M lines/s':>10}{'MB/s':>8}{'requests':>10}  budget")
    missed = []
    figures = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            chunks = asked.chunks or KINDS[name].lines_count // CHUNK_LINES
            make(KINDS[name], chunks, path)
            found, seconds = read(program, path)
            megabytes_per_s = path.stat().st_size / seconds / 1e6
        lines_per_s = chunks * CHUNK_LINES / seconds
        figures[name] = {"lines_per_s": lines_per_s, "megabytes_per_s": megabytes_per_s}
        verdict = "met" if lines_per_s >= BUDGET_LINES_PER_S else "MISSED"
        if verdict != "met":
            missed.append(name)
        speeds = f"{lines_per_s / 1e6:10.1f}{megabytes_per_s:8.0f}{found:10}"
        print(f"{name:15}{speeds}  {BUDGET_LINES_PER_S / 1e6:.0f}: {verdict}", flush=True)
    history.append("traces", figures)
    if missed and not asked.unjudged:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
