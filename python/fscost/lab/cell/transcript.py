"""Events of an agent about one cell, collected and checked against the plan."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
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
class Transcript:
    """State of a cell, built up event by event within the limits of the plan. `on_step` receives
    the name of each interval as it begins: the first at once, the next when one ends."""

    expected: Sequence[str]
    disks: Sequence[str]
    inspects: Sequence[str]
    on_step: Callable[[str], None]
    attached: dict[str, Attached] = field(default_factory=dict)
    mounted: Mounted | None = None
    """First mount of the cell."""
    inspected: dict[str, Inspected] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    ending: Done | Failed | None = None

    def begin(self) -> None:
        """Report the start of the first interval."""
        self.on_step(self.expected[0])

    @property
    def step(self) -> str:
        """Interval in progress."""
        return self.expected[min(len(self.intervals), len(self.expected) - 1)]

    def hear(self, event: Event) -> None:
        """Add one event; ProtocolError if it cannot follow the previous ones."""
        if self.ending is not None:
            raise ProtocolError("an event after the final one")
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
                raise ProtocolError(f"unexpected event {type(event).__name__.lower()!r}")

    def _refuse_unknown(self, name: str, known: Sequence[str], what: str) -> None:
        if name not in known:
            raise ProtocolError(f"{what} {name[:80]!r} is not in the plan")

    def _interval(self, interval: Interval) -> None:
        number = len(self.intervals)
        if number >= len(self.expected) or interval.name != self.expected[number]:
            expected = repr(self.expected[number]) if number < len(self.expected) else "the end"
            raise ProtocolError(f"interval {interval.name[:80]!r} instead of {expected}")
        if set(interval.counters) != set(self.disks):
            raise ProtocolError(
                f"interval {interval.name!r} counts disks {sorted(interval.counters)}, not"
                f" {sorted(self.disks)}"
            )
        if sum(len(each.pauses_ns) for each in (*self.intervals, interval)) > MAX_PAUSES:
            raise ProtocolError(f"more than {MAX_PAUSES} pauses in one cell")
        self.intervals.append(interval)
        if number + 1 < len(self.expected):
            self.on_step(self.expected[number + 1])

    def check_complete(self) -> None:
        """Check, after `done`, that every interval was reported and that a file system was
        mounted."""
        if len(self.intervals) != len(self.expected):
            raise ProtocolError(f"done without the interval {self.expected[len(self.intervals)]!r}")
        if not self.mounted:
            raise ProtocolError("done without a mount")

    def facts(self) -> dict[str, Any]:
        """Facts for the manifest about what the kernel really did."""
        facts: dict[str, Any] = {
            "disks": {
                each.disk: {"device": each.device, "queue": each.queue}
                for each in self.attached.values()
            }
        }
        if self.mounted is not None:
            facts["mount"] = asdict(self.mounted)
        facts["inspect"] = {each.name: each.output for each in self.inspected.values()}
        if isinstance(self.ending, Done):
            facts["recording"] = self.ending.recording or {}
        return facts
