"""SIGKILL at random instants of whole guest runs, and the permitted outcomes."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import residue

PROGRAM = [sys.executable, "-c", "from fscost.cli import main; main()"]
CELLS = int(os.environ.get("FSCOST_TEST_KILLS_CELLS", "4"))
KINDS = ("guest", "disk-server")
"""Kinds of failure permitted for a cell that lost a process."""
RUN_LIMIT_S = 900
SHUTDOWNS = 0.25
"""Share of the kills that wait for a guest to shut down."""
SHUTDOWN_S = 0.5
"""Time from the first output of the commands until QEMU and the disk server have ended."""


@dataclass
class Soak:
    """Draws runs and kills; `outcomes` counts them by victim, by phase of the kill, and by the
    cell's outcome."""

    folder: Path
    seed: int
    environment: Mapping[str, str]
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._runs = 0
        self._cell_s = 10.0

    def guests(self) -> int:
        """Run `CELLS` cells, each of which loses a process, and return the number of kills."""
        run = self._begin()
        killed: dict[str, tuple[str, str]] = {}
        while run.lives():
            cell = run.cell()
            if cell is None or cell in killed:
                time.sleep(0.01)
                continue
            self._wait(run, self._cell_s, lambda cell=cell: run.cell() == cell)
            victim = run.kill_one(self._random)
            if victim is not None:
                killed[victim[2] or cell] = victim[:2]
        self._judge(run, killed)
        return len(killed)

    def runner(self) -> int:
        """Kill fscost itself during a run; some of these runs are resumed and must complete."""
        run = self._begin(cells=2)
        self._wait(run, 2.5 * self._cell_s)
        phase = run.phase()
        is_killed = run.lives()
        run.process.kill()
        run.process.wait()
        self._check(run, "fscost")
        if is_killed:
            self.outcomes["fscost", phase, "nothing left"] += 1
        if (run.out / "manifest.json").exists() and self._random.random() < 0.2:
            resumed = subprocess.run(
                [*PROGRAM, "compare", "--resume", str(run.out)],
                env=run.environment,
                capture_output=True,
                text=True,
            )
            statuses = {cell["status"] for cell in run.cells().values()}
            self._expect(
                resumed.returncode == 0 and statuses == {"done"},
                run,
                f"resumed with {resumed.returncode}: {resumed.stderr}",
            )
        return int(is_killed)

    def making(self, cache: Path) -> int:
        """Start a run without a snapshot and kill a process, most likely while the snapshot is
        made."""
        for entry in (cache / "fscost/snapshots").glob("[!.]*"):
            shutil.rmtree(entry)
        run = self._begin({"XDG_CACHE_HOME": str(cache)}, cells=1)
        while run.lives() and not run.members():
            time.sleep(0.01)
        at = time.monotonic() + self._random.uniform(0.0, 3 * self._cell_s)
        while run.lives() and time.monotonic() < at:
            time.sleep(0.01)
        phase = run.phase()
        victim = "fscost" if self._random.random() < 0.5 else "QEMU"
        if victim == "fscost":
            is_killed = run.lives()
            run.process.kill()
        else:
            found = run.kill_one(self._random)
            is_killed = found is not None
            victim, phase = found[:2] if found else (victim, phase)
        run.process.wait(timeout=RUN_LIMIT_S)
        self._check(run, victim)
        if is_killed:
            ended = (
                "nothing left"
                if victim == "fscost"
                else self._ended(run, next(iter(run.cells()), ""))
            )
            self.outcomes[victim, phase, ended] += 1
        return int(is_killed)

    def whole(self, environment: Mapping[str, str] | None = None) -> None:
        """Run without any kill: every cell must be done and restored from the existing snapshot."""
        run = self._begin(environment, cells=2)
        begin = time.monotonic()
        run.process.wait(timeout=RUN_LIMIT_S)
        cells = run.cells().values()
        self._cell_s = max(1.0, (time.monotonic() - begin) / run.count)
        self._expect(
            run.process.returncode == 0 and {cell["status"] for cell in cells} == {"done"},
            run,
            "an undisturbed run failed",
        )
        self._expect(
            {cell["facts"]["guest"]["started"] for cell in cells} == {"restored"},
            run,
            "a poisoned snapshot",
        )
        self._check(run, "nobody")

    def _begin(self, environment: Mapping[str, str] | None = None, cells: int = 0) -> "Run":
        self._runs += 1
        return Run(
            self.folder / f"run{self._runs}",
            dict(self.environment) | dict(environment or {}),
            cells or CELLS,
        )

    def _wait(self, run: "Run", most_s: float, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Wait until a random instant; one in four falls into a shutdown, which is short."""
        at = time.monotonic() + self._random.uniform(0.0, most_s)
        if self._random.random() < SHUTDOWNS:
            while run.lives() and goes_on() and not run.shuts_down():
                time.sleep(0.005)
            at = time.monotonic() + self._random.uniform(0.0, SHUTDOWN_S)
        while run.lives() and goes_on() and time.monotonic() < at:
            time.sleep(0.002)

    def _judge(self, run: "Run", killed: Mapping[str, tuple[str, str]]) -> None:
        cells = run.cells()
        # 1: a cell failed; 2: all cells failed.
        self._expect(
            run.process.returncode in (0, 1, 2), run, f"ended with {run.process.returncode}"
        )
        self._expect(len(cells) == run.count, run, f"{sorted(cells)} of {run.count} cells ended")
        for name, cell in cells.items():
            if name in killed:
                self.outcomes[(*killed[name], self._ended(run, name))] += 1
            else:
                self._expect(
                    cell["status"] == "done",
                    run,
                    f"{name} failed though nothing was killed: {cell['because']}",
                )
        self._check(run, "guests")

    def _ended(self, run: "Run", name: str) -> str:
        cell = run.cells().get(name)
        if cell is None:
            self._expect(False, run, "the run was lost")
            return "LOST"
        if cell["status"] == "done":
            return "done"
        self._expect(
            cell["kind"] in KINDS, run, f"{name} failed as {cell['kind']}: {cell['because']}"
        )
        return f"failed: {cell['kind']}"

    def _check(self, run: "Run", victim: str) -> None:
        self._expect("Traceback" not in run.said(), run, f"a traceback ({victim} killed)")
        # Each run has a temporary folder of its own, so entries in /tmp may belong to another test.
        # Guests' disks are not loop devices: a new loop device belongs to a native run, possibly one
        # in a container whose processes are not visible here.
        others = ("file /tmp/fscost", "loop device")
        left = {each for each in run.watch.left() if not each.startswith(others)}
        self._expect(not left, run, f"residue ({victim} killed): {left}")

    def _expect(self, holds: bool, run: "Run", trouble: str) -> None:
        if not holds:
            self.troubles.append(f"{run.out.name}: {trouble}\n{run.said()[-3000:]}")
            print(f"TROUBLE {self.troubles[-1]}", flush=True)


class Run:
    """`fscost compare` in guests, one cell after the other."""

    def __init__(self, out: Path, environment: Mapping[str, str], cells: int) -> None:
        self.out = out
        self.count = cells
        self._log = out.with_suffix(".log")
        temporary = out.with_suffix(".tmp")
        temporary.mkdir(parents=True)
        name, _, value = (tag := f"FSCOST_RESIDUE={uuid.uuid4().hex}").partition("=")
        self.watch = residue.Watch(tag, temporary)
        python_path = os.pathsep.join(path for path in sys.path if path)
        self.environment = (
            os.environ
            | dict(environment)
            | {name: value, "TMPDIR": str(temporary), "PYTHONPATH": python_path}
        )
        profiles = [word for number in range(cells) for word in ("--on", f"ext2 -L disk{number}")]
        words = [
            "compare",
            "--lab",
            "vm",
            *profiles,
            "--min-repetitions",
            "1",
            "--max-repetitions",
            "1",
            "--size",
            "1G",
            "--out",
            str(out),
        ]
        # One processor, one guest at a time: then what is killed is known.
        processor = min(os.sched_getaffinity(0))
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *self.watch.inside,
                    "taskset",
                    "-c",
                    str(processor),
                    *PROGRAM,
                    *words,
                    "--",
                    "sh",
                    "-c",
                    "echo hello > file; sync -f .; rm file; echo done",
                ],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def lives(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def cells(self) -> dict[str, dict[str, object]]:
        """Return the cells that ended, by name."""
        with contextlib.suppress(FileNotFoundError):
            return {
                cell["cell"]: cell
                for cell in json.loads((self.out / "manifest.json").read_text())["cells"]
            }
        return {}

    def cell(self) -> str | None:
        """Return the name of the running cell."""
        ended = self.cells()
        with contextlib.suppress(FileNotFoundError):
            return next(
                (
                    folder.name
                    for folder in (self.out / "cells").iterdir()
                    if folder.name not in ended
                ),
                None,
            )
        return None

    def members(self) -> list[residue.Process]:
        found = residue.family(self.process.pid)
        self.watch.known.update(found)
        return [
            process
            for process in found
            if residue.kind_of(process.command) in ("machine", "disk server", "init")
        ]

    def phase(self) -> str:
        """Return the phase of the run, judged by its processes and the cell's files."""
        machines = [
            process for process in self.members() if residue.kind_of(process.command) == "machine"
        ]
        if any("-incoming" not in process.command for process in machines):
            return "making the snapshot"
        cell = self.cell()
        folder = self.out / "cells" / (cell or "none")
        recording = folder / "recording.fscost"
        if self.shuts_down():
            return "shutdown"
        if _size(recording) > 1 << 16:
            return "work"
        return "start" if machines or cell else "before or after cells"

    def shuts_down(self) -> bool:
        """True if the guest has sent the output of its commands, which comes last."""
        cell = self.cell()
        return cell is not None and _size(self.out / "cells" / cell / "output.log") > 0

    def kill_one(self, draw: random.Random) -> tuple[str, str, str | None] | None:
        """Kill any process except fscost itself and return its kind, the phase and the cell."""
        names = {"machine": "QEMU", "disk server": "fscost-disk", "init": "fscost-agent tied"}
        while self.lives():
            members = self.members()
            if members:
                phase, cell, victim = self.phase(), self.cell(), draw.choice(members)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)
                    return names[residue.kind_of(victim.command)], phase, cell
            time.sleep(0.002)
        return None


def _size(file: Path) -> int:
    """Return the size of a file, or 0 if it does not exist."""
    with contextlib.suppress(OSError):
        return file.stat().st_size
    return 0
