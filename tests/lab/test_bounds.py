"""Bounds on the host memory that a hostile guest's agent can occupy."""

import json
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from fscost.lab.cell import bounds
from fscost.lab.cell.events import Attached, Counters, Inspected, Interval, ProtocolError, parse
from fscost.lab.cell.lines import Lines
from fscost.lab.cell.transcript import Transcript

MIB = 1 << 20
MOST_BYTES = 160 * MIB
"""Maximum memory of one guest beyond the interpreter's: one long line twice, and the pauses of a
cell."""
DISKS = [f"disk{number}" for number in range(24)]
STEPS = ["mkfs", "mount", "one", "two", "three"]


def interval(name: str, pauses: str, more: str = "") -> bytes:
    times = "".join(
        f',"{word}":1'
        for word in ("wall_ns", "command_ns", "settle_ns", "cpu_user_ns", "cpu_system_ns")
    )
    counters = json.dumps({disk: {each.name: 1 for each in fields(Counters)} for disk in DISKS})
    probe = f'"probe":{{"interval_ms":1,"pauses_ns":[{pauses}],"failures":0}}'
    bytes_ = '"program_write_bytes":1,"program_read_bytes":1'
    return f'{{"event":"interval","name":"{name}","measured":true{times},{bytes_},"counters":{counters},{probe}{more}}}\n'.encode()


def hour(step: int, count: int) -> bytes:
    """Return an interval with pauses of about a millisecond."""
    thousand = ",".join(str(1_000_000 + number) for number in range(1000))
    return interval(STEPS[step], ",".join([thousand] * (count // 1000)))


BOMBS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a long list in a short kind": lambda: iter(
        [b'{"event":"attached","queue":[' + b"[]," * (20 * MIB) + b"[]]}\n"]
    ),
    "a long list in an interval": lambda: iter(
        [interval("mkfs", "1", ',"x":[' + "[]," * (15 * MIB) + "[]]")]
    ),
    "too many pauses": lambda: iter([interval("mkfs", "0," * (20 * MIB) + "0")]),
    "pauses that are lists": lambda: iter([interval("mkfs", "[]," * (15 * MIB) + "1")]),
    "pauses in every interval": lambda: (hour(number, 3_600_000) for number in range(len(STEPS))),
    "swollen facts of every disk": lambda: (
        b'{"event":"attached","disk":"%s","device":"x","queue":{"x":[' % disk.encode()
        + b"[]," * 21_000
        + b"1]}}\n"
        for disk in DISKS * 3
    ),
    "inspections without end": lambda: (
        b'{"event":"inspected","name":"superblock","output":"%s"}\n' % (b"x" * 900_000)
        for _ in range(150)
    ),
    "inspections of every name": lambda: (
        b'{"event":"inspected","name":"%d","output":"%s"}\n' % (number, b"x" * 900_000)
        for number in range(150)
    ),
    "mounts without end": lambda: (
        b'{"event":"mounted","mountinfo":"%s","options":"","super_options":"","type":""}\n'
        % (b"x" * 60_000)
        for _ in range(2_000)
    ),
    "a line without an end": lambda: (b"x" * MIB for _ in range(150)),
    "a long line without an end": lambda: iter(
        [bounds.LONG_BEGINNING, *(b"x" * MIB for _ in range(150))]
    ),
}


def hear(bomb: str) -> None:
    """Parse a bomb in a separate process, and print the growth of that process's peak memory."""
    ours, theirs = socket.socketpair()
    # Another process sends the bomb, so that the sender's memory does not count.
    child = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import BOMBS, pour; pour({bomb!r})"], stdout=theirs
    )
    theirs.close()
    transcript = Transcript(STEPS, DISKS, ["superblock"], lambda _: None)
    before = memory_bytes("VmRSS")
    ended = "heard to its end"
    try:
        for line in Lines(ours.fileno()).until(time.monotonic() + 600):
            transcript.hear(parse(line))
    except ProtocolError as error:
        ended = str(error)[:100]
    ours.close()
    child.kill()
    child.wait()
    print(json.dumps([memory_bytes("VmHWM") - before, ended]))


def memory_bytes(name: str) -> int:
    """Return this process's memory, current or peak. getrusage(2) is unsuitable, since it includes
    the peak of the parent process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(f"{name}:")).split()[1]) * 1024


def pour(bomb: str) -> None:
    for part in BOMBS[bomb]():
        sys.stdout.buffer.write(part)


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_said_takes_little_memory(bomb: str) -> None:
    script = f"import sys; sys.path[:0] = {sys.path!r}; from {__name__} import hear; hear({bomb!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown, ended = json.loads(done.stdout)
    print(f"{bomb}: {grown >> 20} MiB, {ended}")
    assert grown < MOST_BYTES


def test_an_hour_of_pauses_is_read() -> None:
    event = parse(hour(2, 3_600_000).rstrip())
    assert isinstance(event, Interval)
    assert event.probe is not None
    assert event.probe.interval_ms == 1
    assert len(event.pauses_ns) == 3_600_000
    assert (event.pauses_ns[0], event.pauses_ns[-1]) == (1_000_000, 1_000_999)
    assert set(event.counters) == set(DISKS)


@pytest.mark.parametrize("pauses", ["", "5", "5,6,7", "0," * (bounds.MAX_PAUSES - 1) + "9"])
def test_pauses_are_those_of_the_line(pauses: str) -> None:
    line, found = bounds.take_pauses(interval("mkfs", pauses))
    assert line == interval("mkfs", "")
    assert found == array("q", map(int, filter(None, pauses.split(","))))


@pytest.mark.parametrize(
    "pauses", ["1,,2", "1,x", "-1", "1.5", "[]", "1" * 30, "0," * bounds.MAX_PAUSES + "0"]
)
def test_what_is_no_list_of_pauses_is_refused(pauses: str) -> None:
    with pytest.raises(ValueError, match="pauses"):
        bounds.take_pauses(interval("mkfs", pauses))


@pytest.mark.parametrize("kind", sorted(bounds.MAX_BYTES))
def test_a_kind_has_its_own_limit(kind: str) -> None:
    with pytest.raises(ProtocolError, match=f"'{kind}' of"):
        parse(json.dumps({"event": kind, "x": "x" * bounds.MAX_BYTES[kind]}).encode())


@pytest.mark.parametrize(
    "event",
    [Attached("another", "/dev/vda", {}), Inspected("another", "")],
    ids=["a disk", "an inspection"],
)
def test_what_is_not_in_the_plan_is_not_kept(event: Attached | Inspected) -> None:
    transcript = Transcript(STEPS, DISKS, ["superblock"], lambda _: None)
    with pytest.raises(ProtocolError, match="'another' is not in the plan"):
        transcript.hear(event)


def test_what_a_tool_says_is_cut() -> None:
    said = json.dumps(
        {"event": "inspected", "name": "superblock", "output": "x" * 900_000}
    ).encode()
    event = parse(said)
    assert isinstance(event, Inspected)
    assert len(event.output) == bounds.MAX_INSPECTED_CHARACTERS
