"""Run loop: interleaved repetitions of cells until the stopping rule is satisfied."""

import shlex
import tempfile
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from fscost import files, matrix
from fscost.errors import FscostError, HostError, Terminated
from fscost.host import smart
from fscost.host.interrupts import Interrupts, noted
from fscost.lab.base import LabOptions, Site
from fscost.matrix import Cell
from fscost.results import CELLS, INPUTS, CellRecord, RunFullError, RunResults, RunStore, Skipped
from fscost.run import disturbed, elsewhere, made_here
from fscost.run import folder as run_folder
from fscost.run.estimate import check_host, estimate, fewer_recordings
from fscost.run.executor import Executor, Gone, Ran, Starts
from fscost.run.listener import Listener
from fscost.run.lock import HOST, exclusive
from fscost.run.measure import Task
from fscost.run.record import RUN_ENDING_KINDS, record, why_give_up
from fscost.run.refused import refusal
from fscost.run.spec import RunSpec
from fscost.run.stopping import remaining_s, why_stop
from fscost.workload.model import Workload

_LONGEST_NAME = 255
_Ending = Literal["finished", "interrupted", "stopped"]


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run. `results.folder` no longer exists if the run was interrupted before any
    cell finished."""

    results: RunResults
    interrupted: bool = False
    terminated: Terminated | None = None
    """Signal that interrupted the run; None for Ctrl-C."""

    @property
    def exit_code(self) -> int:
        """0: no cell failed; 1: some cell failed; 2: nothing was measured; 130: interrupted by
        Ctrl-C; 143 or 129: interrupted by SIGTERM or SIGHUP."""
        if self.interrupted:
            return self.terminated.exit_code if self.terminated else 130
        if not self.results.manifest.done:
            return 2
        return 1 if self.results.manifest.failed else 0


def execute(
    spec: RunSpec,
    executor: Executor,
    listener: Listener | None = None,
    lock: str | None = HOST,
) -> RunOutcome:
    """Run `spec`, alone on this machine: under `lock`, or under a lock that the caller holds. Every
    cell is on disk as soon as it has finished, whatever happens afterwards."""
    held = nullcontext() if lock is None else exclusive(lock)
    with held, files.given_to_caller(spec.folder.absolute()), noted() as interrupts:
        try:
            return _Run(spec, executor, listener or Listener(), interrupts).execute()
        finally:
            executor.close()


def commands(spec: RunSpec, site: Site) -> dict[str, list[str]]:
    """Return, for each profile, every command that its first cell would run. Nothing is run."""
    return {
        cell.profile.name: site.commands(cell, _options(spec, cell)) for cell in _first_cells(spec)
    }


def _first_cells(spec: RunSpec) -> list[Cell]:
    """Cells of the first repetition, in the order in which the user named the profiles."""
    first = next(matrix.repetitions(spec.profiles, spec.workload, spec.seed))
    cells = {cell.profile.name: cell for cell in first}
    return [cells[profile.name] for profile in spec.profiles]


def _options(spec: RunSpec, cell: Cell) -> LabOptions:
    return LabOptions(
        cell_dir=spec.folder.absolute() / CELLS / cell.id,
        disk_size_bytes=spec.disk_size_bytes,
        settle=spec.settle,
        drop_caches=spec.drop_caches,
        probe_interval_ms=spec.probe_interval_ms,
        device=spec.device,
        timeout_s=spec.timeout_s,
        device_models=spec.device_models,
        max_recording_bytes=spec.max_recording_bytes,
        writable=spec.writable,
        network=spec.network,
    )


class _Run:
    """One call of `execute`."""

    def __init__(
        self, spec: RunSpec, executor: Executor, listener: Listener, interrupts: Interrupts
    ) -> None:
        self.spec = spec
        self.executor = executor
        self.site = executor.site
        self.listener = listener
        self.interrupts = interrupts
        self.together = 1
        """Repetitions that run together."""

    def execute(self) -> RunOutcome:
        spec = self.spec
        self.site.check()
        existed = spec.folder.exists()
        earlier = run_folder.reopen(spec, self.site) if spec.resume else None
        skipped = self._skipped() if earlier is None else earlier.manifest.skipped
        for entry in skipped:
            self.listener.skips(entry.profile, entry.because)
        if len(skipped) == len(spec.profiles):
            reasons = "; ".join(dict.fromkeys(entry.because for entry in skipped))
            raise HostError(
                f"no profile can run here: {reasons}",
                "run `fscost doctor` to check all requirements",
            )
        found = estimate(spec, self.site, len(spec.profiles) - len(skipped))
        check_host(spec.folder, found, spec.keep)
        store = run_folder.create(spec, self.site, skipped) if earlier is None else earlier
        self._read_smart(store, "before")
        self.listener.starts(spec, found, len(store.manifest.cells))
        try:
            return self._to_the_end(store)
        finally:
            if not store.manifest.cells:
                run_folder.discard(spec.folder, existed)

    def _skipped(self) -> list[Skipped]:
        """Profiles that cannot run here. The lab is asked once per profile, before anything is
        created."""
        run_folder.refuse_used(self.spec.folder, trust=self.spec.trust)
        found = []
        for cell in _first_cells(self.spec):
            because = self._unsupported_reason(cell)
            if because is not None:
                found.append(Skipped(cell.id, cell.profile.name, because))
        return found

    def _unsupported_reason(self, cell: Cell) -> str | None:
        only = self.spec.workload.only_types
        if only and cell.profile.type not in only:
            return f"workload {self.spec.workload.name} runs only on {', '.join(only)}"
        return self.site.unsupported_reason(cell, self.spec.disk_size_bytes)

    def _to_the_end(self, store: RunStore) -> RunOutcome:
        """Run all cells, and record how the run ended, whatever ended it."""
        try:
            because = self._repeat(store)
        except KeyboardInterrupt as signal:
            self.interrupts.arrived()
            terminated = signal if isinstance(signal, Terminated) else None
            by = terminated.signal.name if terminated else "Ctrl-C"
            self._end(store, "interrupted", f"interrupted by {by}")
            return RunOutcome(store.results, interrupted=True, terminated=terminated)
        except FscostError as error:
            if store.manifest.done:
                with suppress(HostError):  # the disk may be full
                    self._end(store, "stopped", error.what)
                before = f"{error.remedy}; " if error.remedy else ""
                folder = shlex.quote(str(self.spec.folder))
                go_on = (
                    "fscost show" if isinstance(error, RunFullError) else "continue with --resume"
                )
                kept = f"finished cells are kept: {go_on} {folder}"
                error = type(error)(error.what, before + kept)
            raise error
        # A resumed run makes the same input again.
        run_folder.remove_inputs(store)
        self._end(store, "finished", because)
        return RunOutcome(store.results)

    def _read_smart(self, store: RunStore, when: str) -> None:
        """Record the drive's own SMART counters. A resumed run keeps the readings from its original
        start."""
        device = self.spec.only_device
        if device is None:
            return
        readings = store.manifest.environment.setdefault("smart", {})
        if when == "after" or when not in readings:
            readings[when] = smart.read(device)
            store.save()

    def _end(self, store: RunStore, state: _Ending, because: str) -> None:
        run_folder.remove_unfinished(store)
        self._read_smart(store, "after")
        store.manifest.state = state
        store.manifest.stopped_because = because
        store.save()
        self.listener.ends(self.spec.folder, because)

    def _repeat(self, store: RunStore) -> str:
        spec = self.spec
        workload = self._with_input(store)
        finished = {kept.cell for kept in store.manifest.cells}
        repetitions = matrix.repetitions(spec.profiles, workload, spec.seed)
        begun = 0
        while True:
            running = self._running(store)
            cells = next(repetitions)
            # An interrupted repetition is completed first: the earlier part of the run had decided
            # to begin it.
            if not any(cell.id in finished for cell in cells):
                lanes = self._lanes(running)
                because = why_stop(spec.stopping, store.results, running, begun, lanes)
                if because is not None:
                    self._check_elsewhere(store, workload)
                    return because
            self.together = self._together(running, begun)
            cells += chain.from_iterable(islice(repetitions, self.together - 1))
            begun += self.together
            # A machine that is lost takes the finished cells of its repetition with it.
            while todo := self._unfinished(store, cells):
                self._run_cells(store, todo, begun)
            if not store.manifest.done:
                return "every profile failed in its first repetition"

    def _check_elsewhere(self, store: RunStore, workload: Workload) -> None:
        """Run a few cells again on another machine, and note whether the bytes are the same."""
        limit_s = self.spec.stopping.max_minutes * 60
        # All cells have finished: without machines, only a check is missing.
        with suppress(HostError):
            for kept in elsewhere.chosen(store.results):
                machine = self.executor.another(kept.machine)
                if machine is None or store.manifest.elapsed_s + kept.duration_s > limit_s:
                    return
                self._run_elsewhere(store, workload, kept, machine)

    def _run_elsewhere(
        self, store: RunStore, workload: Workload, kept: CellRecord, machine: str
    ) -> None:
        spec = self.spec
        repetitions = matrix.repetitions(spec.profiles, workload, spec.seed)
        cells = next(islice(repetitions, kept.repetition, None))
        [cell] = [each for each in cells if each.id == kept.cell]
        with tempfile.TemporaryDirectory(prefix="fscost-second-") as folder:
            options = replace(_options(spec, cell), cell_dir=Path(folder))
            task = Task(cell, options, machine=machine)
            [ran] = self.executor.run_cells([cell], lambda _: task, self.listener.step)
        if isinstance(ran, Ran):
            kept.facts[elsewhere.FACT] = elsewhere.fact(store.results, kept, ran.result, machine)
            store.save()
            self.listener.ran_elsewhere(kept)

    def _unfinished(self, store: RunStore, cells: list[Cell]) -> list[Cell]:
        finished = {kept.cell for kept in store.manifest.cells}
        running = self._running(store)
        return [cell for cell in cells if cell.profile.name in running and cell.id not in finished]

    def _run_cells(self, store: RunStore, todo: list[Cell], begun: int) -> None:
        running = self._running(store)
        starts, steps = partial(self._starts, store, running), self.listener.step
        left = len(todo)
        self.interrupts.check()
        # No variable holds the generator, so that an exception closes it at once.
        for ran in self.executor.run_cells(todo, starts, steps):
            kept = self._undisturbed(store, ran, starts)
            if isinstance(kept, Gone):
                self._drop(store, kept)
            else:
                left -= 1
                self._ends(store, kept, running, begun, left)
            self.interrupts.check()

    def _drop(self, store: RunStore, gone: Gone) -> None:
        """Drop the cells that a machine ran of a repetition that it does not complete."""
        self.listener.runs_again(gone.repetition, gone.machine)
        cells = [each.cell for each in store.manifest.cells if each.repetition == gone.repetition]
        store.drop(cells)
        for cell in cells:
            run_folder.remove_attempt(store.folder, cell)

    def _together(self, running: list[str], begun: int) -> int:
        """Number of repetitions to run together: no more than are certain to run."""
        certain = self.spec.stopping.min_repetitions - begun
        return max(1, min(self.executor.repetitions_at_once(len(running)), certain))

    def _running(self, store: RunStore) -> list[str]:
        """Profiles still in the run: neither skipped nor given up."""
        out = {entry.profile for entry in store.manifest.skipped}
        names = [profile.name for profile in self.spec.profiles if profile.name not in out]
        return [name for name in names if why_give_up(_failures(store, name)) is None]

    def _starts(self, store: RunStore, running: list[str], cell: Cell) -> Task:
        self.listener.cell_starts(cell, len(running))
        keep = {
            "all": True,
            "none": False,
            "one": not any(kept.profile == cell.profile.name for kept in store.manifest.done),
        }[self.spec.keep]
        options = _options(self.spec, cell)
        _make_cell_dir(options.cell_dir)
        spec = self.spec
        machine = None if self.site.is_same_everywhere else _machine(store, cell.repetition)
        url = spec.store and f"{spec.store.rstrip('/')}/{_name_in_store(store)}"
        return Task(cell, options, keep, spec.ssd, spec.wear_device, spec.replay, url, machine)

    def _undisturbed(self, store: RunStore, ran: Ran | Gone, starts: Starts) -> Ran | Gone:
        """Repeat a cell that other programs disturbed, as far as the stopping rule allows."""
        dropped: list[int] = []
        rule = self.spec.stopping
        while isinstance(ran, Ran) and (calls := disturbed.calls(ran.result)):
            if not disturbed.may_repeat(rule, store.manifest, dropped, ran.duration_s):
                break
            cell = ran.result.cell
            self.listener.repeats(cell, calls)
            dropped.append(calls)
            store.manifest.elapsed_s = round(store.manifest.elapsed_s + ran.duration_s, 3)
            run_folder.remove_attempt(store.folder, cell.id)
            [ran] = self.executor.run_cells([cell], starts, self.listener.step)
        if isinstance(ran, Gone):
            return ran
        disturbed.note(ran.result, dropped)
        if disturbed.stays_disturbed(ran.result):
            self.listener.repeats_no_more(ran.result.cell)
        return ran

    def _lanes(self, running: list[str]) -> int:
        """Number of cells that run side by side; they share the elapsed time."""
        return max(1, self.executor.lanes(len(running), self.together))

    def _ends(
        self, store: RunStore, ran: Ran, running: list[str], begun: int, cells_left: int
    ) -> None:
        cell = ran.result.cell
        refused = refusal(ran.result, store.manifest)
        if ran.result.status == "skipped" or refused is not None:
            self._skip(store, cell, refused or ran.result.because)
            return
        kept, rows = record(ran, self.spec.folder)
        lanes = self._lanes(running)
        store.manifest.elapsed_s = round(store.manifest.elapsed_s + kept.duration_s / lanes, 3)
        store.add(kept, rows)
        self._note(store, kept)
        left_s = remaining_s(
            self.spec.stopping, store.manifest, running, begun - 1, cells_left, lanes
        )
        self.listener.cell_ends(kept, left_s)
        if kept.status == "failed":
            if kept.kind in RUN_ENDING_KINDS:
                remedy = "free some space there" + fewer_recordings(self.spec.keep)
                raise HostError(kept.because, remedy)
            because = why_give_up(_failures(store, kept.profile))
            if because is not None:
                self.listener.gives_up(kept.profile, because)

    def _note(self, store: RunStore, kept: CellRecord) -> None:
        """Note a recording of this machine's native lab. A guest's disks may be hostile."""
        sha256 = kept.files_sha256.get(kept.recording)
        if self.site.name == "native" and not kept.machine and sha256 is not None:
            for profile in store.manifest.profiles:
                if profile["name"] == kept.profile:
                    made_here.note(profile, sha256)

    def _skip(self, store: RunStore, cell: Cell, because: str) -> None:
        """Record that a profile cannot run here, as the lab discovered only when it ran the
        cell."""
        run_folder.remove_attempt(store.folder, cell.id)
        store.manifest.skipped.append(Skipped(cell.id, cell.profile.name, because))
        store.save()
        self.listener.skips(cell.profile.name, because)

    def _with_input(self, store: RunStore) -> Workload:
        workload, folder = self.spec.workload, store.folder / INPUTS
        return self.executor.with_input(workload, folder, self.listener.prepares)


def _make_cell_dir(folder: Path) -> None:
    try:
        files.make_folder(folder)
    except OSError as error:
        raise HostError(
            f"{folder} cannot be made: {error.strerror}",
            "find out why fscost cannot write there, then continue with --resume",
        ) from error


def _name_in_store(store: RunStore) -> str:
    """Return the name of the run's folder in a store. It is not cut: other runs use the store."""
    name = f"{store.manifest.started_utc}-{store.folder.absolute().name}"
    return run_folder.slug(name, longest=_LONGEST_NAME)


def _machine(store: RunStore, repetition: int) -> str | None:
    """Machine that ran the finished cells of a repetition; None if there are none."""
    of_it = (
        kept.machine for kept in reversed(store.manifest.cells) if kept.repetition == repetition
    )
    return next(of_it, None)


def _failures(store: RunStore, profile: str) -> list[CellRecord]:
    return [kept for kept in store.manifest.failed if kept.profile == profile]
