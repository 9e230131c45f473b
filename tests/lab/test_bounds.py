"""Bounds on the host memory that a hostile guest's agent can occupy."""

import json
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from fscost.lab.cell import bounds
from fscost.lab.cell.events import Attached, Counters, Inspected, Interval, ProtocolError, parse
from fscost.lab.cell.lines import Lines
from fscost.lab.cell.transcript import Transcript
from fscost.lab.vm.examine import Examining

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


ANSWERS = {
    "of empty lists": b'{"answer":{"x":[' + b"[]," * (2 * MIB) + b"[]]}}\n",
    "of nested objects": b'{"x":' * 900 + b"[" + b"{}," * (2 * MIB) + b"{}]" + b"}" * 900 + b"\n",
    "of numbers": b'{"answer":[' + b"1000," * (MIB + MIB // 2) + b"1]}\n",
    "of one string": b'{"answer":"' + b"x" * (8 * MIB - 20) + b"\\ud83d\\ude00" + b'"}\n',
    "without an end": b"x" * (40 * MIB),
}


def hear_answer(name: str) -> None:
    """Receive what a guest says about a state, and print the growth of peak memory."""
    code = f"from {__name__} import ANSWERS; import sys; sys.stdout.buffer.write(ANSWERS[{name!r}])"
    with examining() as (found, theirs):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=theirs)
        theirs.close()
        before = memory_bytes("VmRSS")
        found.receive(600)
        print(memory_bytes("VmHWM") - before)
        child.kill()
        child.wait()


@contextmanager
def examining() -> Iterator[tuple[Examining, socket.socket]]:
    """Yield the host's end of a guest that examines states, and the guest's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Examining(SimpleNamespace(control=ours), ()), theirs  # type: ignore[arg-type]


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


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_said_about_a_state_takes_little_memory(answer: str) -> None:
    code = f"from {__name__} import hear_answer; hear_answer({answer!r})"
    script = f"import sys; sys.path[:0] = {sys.path!r}; {code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_BYTES // 2


def test_a_line_about_a_state_has_a_deadline() -> None:
    """One byte now and then kept a guest for ever."""

    def drip(guest: socket.socket) -> None:
        for byte in b"[" + b" " * 40 + b"]\n":
            guest.sendall(bytes([byte]))
            time.sleep(0.05)

    with examining() as (found, theirs):
        thread = Thread(target=drip, args=[theirs])
        thread.start()
        assert found.receive(0.3) is None
        thread.join()


@pytest.mark.parametrize("room", [0, 1 << 40])
def test_a_guest_that_fills_the_memory_is_ended(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Its disks are sparse files in memory, of up to two terabytes each."""
    monkeypatch.setattr("fscost.lab.vm.examine._LEAST_BYTES", MIB)
    monkeypatch.setattr("fscost.host.memory_bytes", lambda _: room)
    ended = Event()
    with tempfile.TemporaryFile() as file, examining() as (found, _):
        file.write(b"x" * (2 * MIB))
        file.flush()
        machine = SimpleNamespace(kill=ended.set, was_killed=lambda: True)
        found.files = [file.fileno()]
        monkeypatch.setattr(found, "_machine", machine)
        with found.watched():
            assert ended.wait(1 if room else 60) is not bool(room)
        assert found.was_killed is bool(room)
        assert bool(found.failed) is not bool(room)


def test_the_largest_answer_about_a_state_is_read() -> None:
    """4,000 files and 16 MiB, with a folder of other names."""
    digest = -(1 << 62)
    files = {f"{n}:4294967295": [f"folder/{'x' * 60}{n}", [digest] * 8] for n in range(4000)}
    folders = {"1:1": {f"{'x' * 60}{n}": f"{n}:4294967295" for n in range(20_000)}}
    told = {"answer": {"files": {"files": files, "folders": folders}}}
    with examining() as (found, theirs):
        thread = Thread(target=theirs.sendall, args=[json.dumps(told).encode() + b"\n"])
        thread.start()
        assert found.receive(60) == told
        thread.join()


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
