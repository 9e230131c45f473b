"""Guests that examine states: one that dies of a state is a finding, and others go on."""

import itertools
import json
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import WRITE, Body, write

from fscost.crash.guests import Site, answered
from fscost.errors import HostError

SIZE = 1 << 20
SECTORS = ["log", [5, -(1 << 63)]]
FINE = {
    "mounts": True,
    "is_clean": True,
    "needs_repair": False,
    "broken": [],
    "files": None,
    "words": [],
    "repair_s": 0.0,
}


@dataclass
class Guest:
    """A guest whose fate is written in its jobs."""

    files: list[int]
    asked: Counter[str]
    greeting: Any
    was_killed: bool = False
    failed: str = ""
    said: Iterator[Any] = field(default_factory=lambda: iter(()))
    seen: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def last_words(self) -> list[str]:
        return ["Kernel panic - not syncing"]

    def send(self, value: dict[str, Any]) -> None:
        if "disks" in value:
            self.said = iter([self.greeting])
        elif "fate" in value:
            fate = value["fate"]
            self.asked[fate] += 1
            if fate == "killed once" and self.asked[fate] > 1:
                fate = "fine"
            self.was_killed = fate.startswith("killed")
            self.failed = "python3 ended with 1" if fate == "fails" else ""
            answers = {
                "fine": [{"disk": 0}, {"answer": FINE}],
                "a wrong type": [{"answer": {**FINE, "mounts": 1}}],
                "empty": [{"disk": 0}, {"blank": 0}, {"answer": FINE}],
                "spare": [{"blank": 1}, {"answer": FINE}],
                "no such disk": [{"disk": 1}],
                "asks for ever": itertools.repeat({"disk": 0}),
            }
            told = [{"answer": {**FINE, **value["says"]}}] if "says" in value else [None]
            self.said = iter(answers.get(fate, told))
        elif "filled" in value:
            file = self.files[value["filled"]]
            self.seen.append(os.pread(file, 4096, 0)[:4])
            self.sizes.append(os.fstat(file).st_size)

    def receive(self, limit_s: float) -> Any:
        return next(self.said)


@dataclass
class Lab:
    greeting: Any = field(default_factory=lambda: {"ready": True})
    asked: Counter[str] = field(default_factory=Counter)
    guests: list[Guest] = field(default_factory=list)

    @contextmanager
    def start(self, about: object) -> Iterator[Guest]:
        files = [os.memfd_create(name) for name in ("disk", "new")]
        for file in files:
            os.pwrite(file, b"used", 0)
            os.truncate(file, SIZE)
        self.guests.append(Guest(files, self.asked, self.greeting))
        try:
            yield self.guests[-1]
        finally:
            for file in files:
                os.close(file)

    def found(self, recording: Path, *fates: str, **more: Any) -> list[dict[str, Any]]:
        about = {"recording": str(recording), "device": "reorder-4k", "disks": [], "spares": [{}]}
        jobs = [
            {"at_ns": 9, "kept": [number % 2], "without": [], "fate": fate, **more}
            for number, fate in enumerate(fates)
        ]
        answers: dict[int, dict[str, Any]] = {}
        answered(Site(self.start, 1, lambda: None), about, jobs, answers.__setitem__)
        return [answers[place] for place in range(len(jobs))]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return two pending versions of the first block."""
    content = b"".join(name.ljust(4096) for name in (b"even", b"odd "))
    events = [struct.pack("<QQQQIHBB", at, at, 0, 4096, at * 4096, 0, WRITE, 0) for at in range(2)]
    return write(tmp_path / "recording", [(1, Body(events, content))], size=SIZE)


def test_one_guest_takes_many_states(recording: Path) -> None:
    lab = Lab()
    assert lab.found(recording, "fine", "fine", "fine") == [FINE] * 3
    [guest] = lab.guests
    assert guest.seen == [b"even", b"odd ", b"even"]


def test_a_disk_is_empty_or_as_it_was(recording: Path) -> None:
    """Of a lost disk, the state is that of another instant."""
    lab = Lab()
    assert lab.found(recording, "empty", "spare") == [FINE] * 2
    [guest] = lab.guests
    assert guest.seen == [b"even", bytes(4), bytes(4)]
    assert guest.sizes == [SIZE] * 3
    old = {"number": 0, "how": "stale", "begin_ns": 9, "all_kept": [1]}
    [found] = lab.found(recording, "fine", lost=old)
    assert found == FINE
    assert lab.guests[-1].seen == [b"odd "]


@pytest.mark.parametrize("fate", ["dies", "a wrong type", "no such disk", "asks for ever"])
def test_a_state_that_stops_the_kernel_costs_one_guest_and_is_a_finding(
    recording: Path, fate: str
) -> None:
    lab = Lab()
    first, second, third = lab.found(recording, "fine", fate, "fine")
    assert first == third == FINE
    assert second["stops_kernel"]
    assert not second["mounts"]
    assert "  Kernel panic - not syncing" in second["words"]
    assert (len(lab.guests), lab.asked[fate]) == (2, 1)


@pytest.mark.parametrize(
    "says",
    [
        {"files": {"files": {"x": SECTORS}, "folders": {}}},
        {"files": {"files": {"1:x": SECTORS}, "folders": {}}},
        {"files": {"files": {"1:2": ["log", [1 << 63]]}, "folders": {}}},
        {"files": {"files": {}, "folders": {"x": {}}}},
        {"files": {"files": {}, "folders": {"1:2": {"log": "x" * 99}}}},
        {"broken": [["no such kind", "log"]]},
        {"broken": [["data_lost", "x"]]},
        {"broken": [["names_lost", "9" * 5000]]},
        {"repair_s": "x"},
        {"repair_s": -1.0},
    ],
)
def test_an_answer_that_cannot_be_judged_is_a_finding(
    recording: Path, says: dict[str, Any]
) -> None:
    """These were kept, and failed later as defects of fscost, again after each --resume."""
    [found] = Lab().found(recording, "as told", says=says)
    assert found["stops_kernel"]


def test_little_is_kept_of_an_answer(recording: Path) -> None:
    files = {"files": {"1:2": SECTORS, "3:": ["gone", None]}, "folders": {"2:0": {"log": "1:2"}}}
    broken = [["lost", "x" * 9999], ["data_lost", "2.5"]]
    more = {"x": [[]] * 99, "stops_kernel": 1, "words": ["x" * (1 << 20), "y"], "repair_s": 2}
    [found] = Lab().found(recording, "as told", says={"files": files, "broken": broken, **more})
    assert json.loads(json.dumps(found["files"])) == files
    assert found["broken"] == [["lost", "x" * 4096], ["data_lost", "2.5"]]
    assert found["words"] == ["x" * (1 << 14)]
    assert set(found) == set(FINE)


def test_a_state_whose_guest_was_killed_is_examined_again(recording: Path) -> None:
    lab = Lab()
    assert lab.found(recording, "killed once", "fine") == [FINE] * 2
    assert len(lab.guests) == 2


def test_guests_that_are_always_killed_end_the_examination(recording: Path) -> None:
    with pytest.raises(HostError, match="4 guests were killed"):
        Lab().found(recording, "killed")


def test_a_program_that_fails_is_no_finding(recording: Path) -> None:
    with pytest.raises(HostError, match="does not examine states: python3 ended with 1"):
        Lab().found(recording, "fine", "fails")


def test_a_guest_that_does_not_begin_is_no_finding(recording: Path) -> None:
    with pytest.raises(HostError, match="does not examine states: Kernel panic"):
        Lab(greeting=None).found(recording, "fine")
