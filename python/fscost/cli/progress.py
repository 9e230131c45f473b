"""A run's progress on standard error: a live line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from fscost.matrix import Cell
from fscost.profile import described
from fscost.results import CellRecord
from fscost.run import Estimate, Listener, RunSpec
from fscost.view import elsewhere
from fscost.view.grid import plain
from fscost.view.units import human_bytes, human_seconds

_MKFS = ("mkfs", "superblock")
"""Parts of a cell's output that are not the command's."""
_MOST_SHOWN_BYTES = 1 << 20


def progress(file: TextIO | None = None, *, show_output: bool = False) -> "Progress":
    """Return the progress display that suits standard error. `show_output`: with the output of the
    command in each cell."""
    stream = file or sys.stderr
    kind = LiveProgress if stream.isatty() else Progress
    return kind(stream, show_output=show_output)


class Progress(Listener):
    """Progress display that prints one line for each event."""

    def __init__(self, file: TextIO, *, show_output: bool = False) -> None:
        self._file = file
        self._show_output = show_output
        self._folder = Path()
        self._steps: dict[str, str] = {}
        self._ended = 0
        self._cells = ""
        self._remaining = ""
        self._reasons: set[str] = set()

    def say(self, line: str) -> None:
        """Print a permanent line."""
        print(plain(line), file=self._file, flush=True)

    def note(self, line: str) -> None:
        """Show the current activity, which is too short-lived for a log."""

    def close(self) -> None:
        """End the display, whether or not the run succeeded."""

    def starts(self, spec: RunSpec, estimate: Estimate, finished_cells: int) -> None:
        count = _range(estimate.cells_min, estimate.cells_max)
        facts = [f"{count} cell{'s' * (estimate.cells_max != 1)}, seed {spec.seed}"]
        if finished_cells:
            facts.append(f"{finished_cells} are finished already")
        lasts = map(human_seconds, (estimate.seconds_min, estimate.seconds_max))
        # Of a command, neither its time nor its bytes are known before its first cell.
        more = "" if estimate.host_bytes is not None else ", and the command's own in each cell"
        facts.append(f"expected time {_range(*lasts)}{more}")
        if estimate.host_bytes is not None:
            facts.append(f"recordings of at most {human_bytes(estimate.host_bytes)}")
        self.say(f"{spec.workload.name} on {', '.join(described(spec.profiles))}")
        self.say("; ".join([*facts, f"results in {spec.folder}"]))
        self._ended = finished_cells
        self._folder = spec.folder
        is_open = estimate.cells_min != estimate.cells_max
        self._cells = f"{'at most ' * is_open}{estimate.cells_max}"

    def prepares(self, what: str) -> None:
        self.note(what)

    def skips(self, profile: str, because: str) -> None:
        is_known = because in self._reasons
        self._reasons.add(because)
        why = "for the same reason" if is_known else f"because {because}"
        self.say(f"skipped: {profile}, {why}")

    def cell_starts(self, cell: Cell, running: int) -> None:
        self._steps[cell.profile.name] = ""
        self._note_steps(cell)

    def step(self, cell: Cell, name: str) -> None:
        self._steps[cell.profile.name] = f": {name}"
        self._note_steps(cell)

    def _note_steps(self, cell: Cell) -> None:
        running = ", ".join(f"{profile}{step}" for profile, step in self._steps.items())
        self.note(f"{running}; repetition {cell.repetition}")

    def cell_ends(self, record: CellRecord, remaining_s: tuple[float, float]) -> None:
        self._ended += 1
        self._steps.pop(record.profile, None)
        span = _span(remaining_s)
        self._remaining = f"; remaining: {span}" if span else ""
        what = (
            f"[{self._ended} of {self._cells}] {record.profile}, repetition {record.repetition}: "
        )
        if record.status == "failed":
            self.say(f"{what}FAILED: {record.because}")
        else:
            self._done(f"{what}{human_seconds(record.duration_s)}{self._remaining}")
        if self._show_output and record.output:
            for line in _said(self._folder / record.output):
                self.say(f"  {line}")

    def _done(self, line: str) -> None:
        self.say(line)

    def repeats(self, cell: Cell, outside_sync_calls: int) -> None:
        times = "once" if outside_sync_calls == 1 else f"{outside_sync_calls} times"
        self.say(
            f"{cell.profile.name}, repetition {cell.repetition}: other programs called sync"
            f" {times}; repeating the cell"
        )

    def repeats_no_more(self, cell: Cell) -> None:
        self.say(
            f"{cell.profile.name}, repetition {cell.repetition}: other programs called sync during"
            " each attempt; no further cell is repeated (--lab vm is not affected)"
        )

    def runs_again(self, repetition: int, machine: str) -> None:
        on = f"on {machine or 'the machine of the results'}"
        self.say(f"repetition {repetition} runs again on one machine; its cells {on} are dropped")

    def ran_elsewhere(self, record: CellRecord) -> None:
        self.say(elsewhere.said(record))

    def gives_up(self, profile: str, because: str) -> None:
        self.say(f"{profile} is not tried again: {because}")

    def ends(self, folder: Path, stopped_because: str) -> None:
        self.say(f"stopped: {stopped_because}")


class LiveProgress(Progress):
    """Progress display with a spinner for the current step, below the permanent lines."""

    def __init__(self, file: TextIO, *, show_output: bool = False) -> None:
        super().__init__(file, show_output=show_output)
        self._console = Console(file=file, highlight=False)
        self._status: Status | None = None

    def say(self, line: str) -> None:
        self._console.print(Text(plain(line)))

    def note(self, line: str) -> None:
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        done = f"[{self._ended} of {self._cells}] " if self._ended else ""
        self._status.update(Text(plain(f"{done}{line}{self._remaining}")))

    def _done(self, line: str) -> None:
        """Show no line of its own for a finished cell: 60 of them would push the answer out of
        sight. With the command's output, the line is its heading."""
        if self._show_output:
            self.say(line)

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def _said(output: Path) -> Iterator[str]:
    """Yield what the steps of a cell printed. The agent begins each part with `=== STEP`."""
    is_ours = False
    with output.open(encoding="utf-8", errors="replace") as file:
        for line in file.read(_MOST_SHOWN_BYTES).splitlines():
            mark, _, name = line.partition(" ")
            if mark == "===":
                is_ours = name not in _MKFS
            elif is_ours:
                yield line


def _span(seconds: tuple[float, float]) -> str:
    low, high = seconds
    if high <= 0:
        return ""
    return (
        f"at most {human_seconds(high)}"
        if low <= 0
        else _range(human_seconds(low), human_seconds(high))
    )


def _range(low: object, high: object) -> str:
    return str(low) if low == high else f"{low} to {high}"
