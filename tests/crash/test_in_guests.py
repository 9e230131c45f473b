"""A recovery in a guest is recorded, and cut in other guests."""

import json
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import FLUSH, MARK, WRITE, Body, write

from fscost.crash.guests import Site
from fscost.crash.in_guests import inside
from fscost.errors import HostError

BLOCK, SIZE = 4096, 1 << 20
FINE = {
    "mounts": True,
    "is_clean": True,
    "needs_repair": False,
    "broken": [],
    "files": None,
    "words": [],
    "repair_s": 0.0,
}
JOB = {"at_ns": 9, "kept": [0], "without": []}


def body(*events: tuple[int, int, bytes]) -> Body:
    """Return events at instants: an operation and its content each."""
    rows, content = [], b""
    for at_ns, op, data in events:
        rows.append(struct.pack("<QQQQIHBB", at_ns, at_ns, 0, len(data), len(content), 0, op, 0))
        content += data
    return Body(rows, content)


def marked(at_ns: int, name: str) -> tuple[int, int, bytes]:
    return at_ns, MARK, json.dumps({"name": name, "detail": {}}).encode()


@dataclass
class Guest:
    """A guest that sends the messages `says`, in turn. `files`: its disks."""

    files: Sequence[int]
    says: Sequence[Any]
    recording: Path | None = None
    heard: list[Any] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)
    failed: str = "it ended"
    was_killed: bool = False
    said: Iterator[Any] = field(default_factory=lambda: iter(()))

    @property
    def last_words(self) -> list[str]:
        return []

    def send(self, value: Any) -> None:
        if "filled" in value:
            self.seen.append(os.pread(self.files[0], 4, 0))
        elif "disks" in value:
            self.said = iter([{"ready": True}])
        elif "marked" not in value:
            self.said = iter(self.says)

    def receive(self, limit_s: float) -> Any:
        return next(self.said)

    def mark(self, name: str) -> None:
        self.heard.append(name)

    def finish(self) -> None:
        """Leave the recording of a recovery that wrote a block."""
        assert self.recording is not None
        old, new = (name.ljust(BLOCK) for name in (self.seen[0], b"late"))
        durable = [(1, WRITE, old), (2, FLUSH, b"")]
        events = [*durable, marked(10, "mount"), (20, WRITE, new), marked(30, "end")]
        write(self.recording, [(1, body(each)) for each in events], size=SIZE)


@dataclass
class Lab:
    says: Sequence[Any] = ({"disk": 0}, {"mark": "mount"}, {"mark": "end"}, {"answer": {}})
    guests: list[Guest] = field(default_factory=list)

    @contextmanager
    def start(self, about: object) -> Iterator[Guest]:
        file = os.memfd_create("disk")
        self.guests.append(Guest([file], [{"disk": 0}, {"answer": FINE}]))
        try:
            yield self.guests[-1]
        finally:
            os.close(file)

    @contextmanager
    def record(self, about: object, images: Sequence[int], recording: Path) -> Iterator[Guest]:
        self.guests.append(Guest(images, self.says, recording))
        yield self.guests[-1]

    def found(self, state: Path, **asked: Any) -> Any:
        disks = [{"name": "disk0", "size_bytes": SIZE, "sector_bytes": 512}]
        about = {"recording": str(state), "device": "reorder-4k", "disks": disks}
        again = {"most": 9, "seed": 1, **asked}
        examine = inside(Site(self.start, 1, lambda: None), self.record)
        answers: dict[int, Any] = {}
        examine(about, [{**JOB, "again": again}], answers.__setitem__)
        return answers[0]["again"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write(tmp_path / "recording", [(1, body((1, WRITE, b"here".ljust(BLOCK))))], size=SIZE)


def test_a_recovery_is_recorded_and_cut(recording: Path, tmp_path: Path) -> None:
    lab = Lab()
    seconds = lab.found(recording, recording=str(tmp_path / "recovery"))
    recovered, examining = lab.guests
    assert (recovered.seen, recovered.heard) == ([b"here"], ["mount", "end"])
    # What the recovery wrote, which no flush followed, is there or not.
    assert sorted(set(examining.seen)) == [b"here", b"late"]
    assert len(seconds) == len(examining.seen)
    assert all(each["found"] == FINE for each in seconds)
    assert (tmp_path / "recovery").exists()


@pytest.mark.parametrize(
    "says", [[{"disk": 0}, {"mark": "end"}], [{"mark": "mount"}, {"answer": {}}], [None]]
)
def test_a_guest_that_does_not_recover_is_no_finding(recording: Path, says: Sequence[Any]) -> None:
    with pytest.raises(HostError, match="it ended"):
        Lab(says).found(recording)
