"""What an agent told about one cell, gathered, and checked against what the plan lets it tell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fscost.lab.cell.bounds import MAX_PAUSES
from fscost.lab.cell.events import (
    Attached,
    Done,
    Event,
    Failed,
    Inspected,
    Interval,
    Mounted,
    ProtocolError,
)


@dataclass
class Story:
    """Grows event by event, and no further than the plan. `on_step` hears each interval's name as
    it begins: the first at once, the next when one ends."""

    expected: Sequence[str]
    disks: Sequence[str]
    inspects: Sequence[str]
    on_step: Callable[[str], None]
    attached: dict[str, Attached] = field(default_factory=dict)
    mounted: Mounted | None = None
    """The first mount."""
    inspected: dict[str, Inspected] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    ending: Done | Failed | None = None

    def begin(self) -> None:
        """The agent starts."""
        self.on_step(self.expected[0])

    @property
    def step(self) -> str:
        """The interval under way."""
        return self.expected[min(len(self.intervals), len(self.expected) - 1)]

    def hear(self, event: Event) -> None:
        """One event; ProtocolError when it cannot follow what was heard before."""
        if self.ending is not None:
            raise ProtocolError("an event after its last")
        match event:
            case Attached():
                self._refuse_unknown(event.disk, self.disks, "disk")
                self.attached[event.disk] = event
            case Mounted():
                self.mounted = self.mounted or event
            case Inspected():
                self._refuse_unknown(event.name, self.inspects, "inspection")
                self.inspected[event.name] = event
            case Interval():
                self._interval(event)
            case Failed() | Done():
                self.ending = event
            case _:
                raise ProtocolError(f"{type(event).__name__.lower()} is not for the runner")

    def _refuse_unknown(self, name: str, known: Sequence[str], what: str) -> None:
        if name not in known:
            raise ProtocolError(f"{what} {name[:80]!r} is not in the plan")

    def _interval(self, interval: Interval) -> None:
        number = len(self.intervals)
        if number >= len(self.expected) or interval.name != self.expected[number]:
            expected = self.expected[number] if number < len(self.expected) else "no more"
            raise ProtocolError(f"interval {interval.name[:80]!r} where {expected!r} was to come")
        if set(interval.counters) != set(self.disks):
            raise ProtocolError(
                f"interval {interval.name!r} counts disks {sorted(interval.counters)}, not {sorted(self.disks)}"
            )
        if sum(len(each.pauses_ns) for each in (*self.intervals, interval)) > MAX_PAUSES:
            raise ProtocolError(f"more than {MAX_PAUSES} pauses in one cell")
        self.intervals.append(interval)
        if number + 1 < len(self.expected):
            self.on_step(self.expected[number + 1])

    def check_complete(self) -> None:
        """After `done`: every interval was told, and a file system was really mounted."""
        if len(self.intervals) != len(self.expected):
            raise ProtocolError(f"done without the interval {self.expected[len(self.intervals)]!r}")
        if not self.mounted:
            raise ProtocolError("done without a mount")

    def facts(self) -> dict[str, Any]:
        """What the kernel really did, for the manifest."""
        facts: dict[str, Any] = {
            "disks": {
                each.disk: {"device": each.device, "queue": each.queue}
                for each in self.attached.values()
            }
        }
        if self.mounted is not None:
            first = self.mounted
            facts["mount"] = {
                "type": first.type,
                "options": first.options,
                "super_options": first.super_options,
                "mountinfo": first.mountinfo,
            }
        facts["inspect"] = {each.name: each.output for each in self.inspected.values()}
        if isinstance(self.ending, Done):
            facts["recording"] = self.ending.recording
        return facts
