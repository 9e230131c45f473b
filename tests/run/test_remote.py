"""Runs on a cluster: each cell is counted once, whatever happens to the machines."""

import itertools
import os
import pickle
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fscost.cli.recording import fetch
from fscost.errors import FscostError, HostError, InputError
from fscost.files import stores
from fscost.lab.base import CellResult
from fscost.lab.fake import FakeLab
from fscost.lab.spec import LabSpec
from fscost.matrix import repetitions
from fscost.results import kept_recording, load, stored
from fscost.run import RunOutcome, RunSpec, StoppingRule, execute
from fscost.run.executor import ray, survey, worker
from fscost.run.executor.remote import Ended, Joined, Lost, LostError, Remote
from fscost.run.executor.survey import Question, Report, Reports, agreed
from fscost.run.measure import Task
from fscost.view.kept import kept
from fscost.view.run import view

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
Run = Callable[..., RunOutcome]


@dataclass
class Machines:
    """A cluster in this process: real workers, whose answers travel as pickles.

    `dies`: machine → number of the cell in the middle of which it dies. `twice`: every outcome
    arrives a second time. `interrupts_at`: number of the news before which Ctrl-C arrives.
    `broken`: machine → why it runs no cell. `fails_to_read`: machines that die while a file of a
    finished cell is read. `adds_bytes`: machine → bytes that it writes more.
    """

    names: tuple[str, ...] = ("one", "two", "three")
    dies: dict[str, int] = field(default_factory=dict)
    twice: bool = False
    interrupts_at: int | None = None
    broken: dict[str, str] = field(default_factory=dict)
    fails_to_read: set[str] = field(default_factory=set)
    adds_bytes: dict[str, int] = field(default_factory=dict)
    begun: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _news: deque[Joined | Ended | Lost] = field(default_factory=deque)
    _heard: int = 0
    _workers: dict[str, worker.Worker] = field(default_factory=dict)

    def ask(self, question: Question) -> Reports:
        sent = pickle.loads(pickle.dumps(question))
        return {name: self.broken.get(name) or survey.answer(sent) for name in self.names}

    def hire(self, question: Question, machines: Mapping[str, Report]) -> None:
        for name in machines:
            self._workers[name] = worker.Worker()
            of_machine = replace(question, lock=f"{question.lock}.{name}")
            because = self._workers[name].open(pickle.loads(pickle.dumps(of_machine)))
            self._news.append(Joined(name) if because is None else Lost(name, because))

    def begin(self, machine: str, ticket: int, task: Task) -> None:
        self.begun.append((machine, task.cell.id))
        if sum(name == machine for name, _ in self.begun) == self.dies.get(machine):
            self._news.append(Lost(machine, "its worker ended unexpectedly"))
            return
        outcome = self._workers[machine].run(pickle.loads(pickle.dumps(task)))
        for place, sample in enumerate(outcome.result.samples if outcome.result else ()):
            if sample.metric == "device_write_bytes" and sample.phase == "write":
                more = replace(sample, value=sample.value + self.adds_bytes.get(machine, 0))
                outcome.result.samples[place] = more
        for _ in range(1 + self.twice):
            self._news.append(Ended(ticket, pickle.loads(pickle.dumps(outcome))))

    def next(self) -> Joined | Ended | Lost:
        self._heard += 1
        if self._heard == self.interrupts_at:
            raise KeyboardInterrupt
        return self._news.popleft()

    def read(self, machine: str, cell: str, name: str, offset: int) -> bytes:
        if machine in self.fails_to_read:
            raise LostError("its worker ended unexpectedly")
        return self._workers[machine].read(cell, name, offset)

    def forget(self, machine: str, cell: str) -> None:
        self._workers[machine].forget(cell)

    def dismiss(self, machine: str) -> None:
        self._workers.pop(machine).close()

    def close(self) -> None:
        for name in list(self._workers):
            self.dismiss(name)


@pytest.fixture(autouse=True)
def _workers_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "workers"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


@pytest.fixture
def run(tmp_path: Path, heard: Any) -> Run:
    """Execute a run on a cluster whose machines have the fake lab with these options."""

    def run(spec: RunSpec, machines: Machines, lab: str = "") -> RunOutcome:
        cells = tuple(next(repetitions(spec.profiles, spec.workload, spec.seed)))
        lock = f"fscost.test.{os.getpid()}.{tmp_path.name}"
        lab_spec = LabSpec("fake", fake=lab)
        question = Question(lab_spec, lock, cells, spec.disk_size_bytes, 0, spec.store)
        executor = Remote(machines, question, machines.said.append)
        return execute(spec, executor, heard, lock=None)

    return run


def numbers(outcome: RunOutcome) -> list[Any]:
    return sorted(tuple(row.values()) for row in outcome.results.samples.to_pylist())


def second_runs(outcome: RunOutcome) -> dict[str, Any]:
    cells = outcome.results.manifest.cells
    return {cell.cell: cell.facts["second_run"] for cell in cells if "second_run" in cell.facts}


def machines_of(outcome: RunOutcome) -> dict[int, set[str]]:
    """The machines that ran the cells of each repetition."""
    cells = outcome.results.manifest.cells
    return {
        number: {cell.machine for cell in cells if cell.repetition == number}
        for number in {cell.repetition for cell in cells}
    }


@pytest.mark.parametrize(
    "trouble",
    [
        {},
        {"twice": True},
        {"dies": {"two": 1}},
        {"dies": {"one": 2, "two": 3}, "twice": True},
        {"broken": {"one": "it has fscost 0.0, and this is fscost 1.0"}},
        {"fails_to_read": {"three"}},
    ],
    ids=repr,
)
def test_a_run_comes_to_the_same_as_a_local_one(
    spec: Make,
    go: Go,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: dict[str, Any],
) -> None:
    monkeypatch.setattr(worker, "_SMALL_BYTES", 8)  # the output is read in pieces
    monkeypatch.setattr(worker, "PIECE_BYTES", 3)
    local = go(spec(folder=tmp_path / "local", keep="all"))
    machines = Machines(**trouble)
    outcome = run(spec(keep="all"), machines)
    assert numbers(outcome) == numbers(local)
    assert numbers(outcome) == numbers(RunOutcome(load(spec().folder)))
    cells = outcome.results.manifest.cells
    assert sorted(cell.cell for cell in cells) == sorted(
        cell.cell for cell in local.results.manifest.cells
    )
    for cell in cells:
        assert (spec().folder / cell.output).read_text() == f"=== {cell.cell}\n"
        assert (spec().folder / cell.recording).read_bytes() == b"fake"
    out = {*trouble.get("dies", {}), *trouble.get("broken", {}), *trouble.get("fails_to_read", ())}
    assert {
        line.replace(",", "").split()[1 + line.startswith("skipped")] for line in machines.said
    } == out
    assert {cell.machine for cell in cells} >= {*machines.names} - out
    assert outcome.results.manifest.state == "finished"


def test_recordings_go_to_a_store_and_come_back(
    spec: Make, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = f"file://{tmp_path}/shared"
    one = spec(profiles=spec().profiles[:1], keep="all", store=shared)
    outcome = run(one, Machines())
    cells = outcome.results.manifest.cells
    assert [kept_recording(one.folder, cell) for cell in cells] == [None] * 3
    assert {place.name for cell in cells if (place := stored(cell))} == {
        f"{cell.cell}.fscost" for cell in cells
    }
    url = next(place.url for cell in cells if (place := stored(cell)))
    assert url.startswith(f"{shared}/")
    written = [tmp_path / "shared", *(tmp_path / "shared").rglob("*")]
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in written} == {
        (True, 0o700),
        (False, 0o600),
    }
    assert kept(outcome.results).missing == {
        "ext4": f"its recording is in a store: `fscost recording fetch RUN --from {url}`"
    }
    fetch(one.folder, url, profile=["ext4"])
    assert capsys.readouterr().out.count(": 4 B\n") == 3
    for cell in load(one.folder).manifest.cells:
        path = kept_recording(one.folder, cell)
        assert path is not None
        assert path.read_bytes() == b"fake"
    fetch(one.folder, url)  # again: nothing to do
    assert capsys.readouterr().out == ""


def test_two_runs_never_share_a_folder_of_a_store(spec: Make, run: Run, tmp_path: Path) -> None:
    """Long names differ at their end, and both runs begin in the same second."""
    urls = set()
    for name in ("first", "second"):
        folder = tmp_path / f"2026-11-29-1120-a-workload-of-a-long-name-{name}"
        once = {"profiles": spec().profiles[:1], "stopping": StoppingRule(1, 1)}
        one = spec(folder=folder, keep="one", store=f"file://{tmp_path}/shared", **once)
        [cell] = run(one, Machines()).results.manifest.cells
        place = stored(cell)
        assert place is not None
        assert place.url.endswith(folder.name)
        urls.add(place.url)
    assert len(urls) == 2


def test_a_run_whose_recordings_are_in_a_store_is_not_resumed_without(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    shared = f"file://{tmp_path}/shared"
    assert run(spec(keep="all", store=shared), Machines(interrupts_at=8)).interrupted
    before = (spec().folder / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="are in a store, and none is named now") as caught:
        run(spec(keep="all", resume=True), Machines())
    assert caught.value.remedy == f"add --recordings-to {shared}"
    assert (spec().folder / "manifest.json").read_bytes() == before
    outcome = run(spec(keep="all", resume=True, store=shared), Machines())
    assert all(map(stored, outcome.results.manifest.cells))
    assert len(outcome.results.manifest.cells) == 9


def test_files_of_a_machine_that_was_lost_since_are_lost() -> None:
    with pytest.raises(LostError, match="before its files were read"):
        ray.RayCluster("auto", print).read("one", "ext4.0", "recording.fscost", 0)


def test_a_recording_is_read_on_the_machine_that_made_it(
    spec: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces: a Ray cluster takes the place of this machine's store."""
    one = spec(profiles=spec().profiles[:1], keep="all", store=f"file://{tmp_path}/shared")
    cells = run(one, Machines()).results.manifest.cells
    asked: list[tuple[str, int]] = []

    class Cluster:
        def __init__(self, address: str, _: Any) -> None:
            assert address == "head:6379"

        def read_stored(self, machine: str, url: str, name: str, offset: int) -> bytes:
            asked.append((machine, offset))
            return stores.read(url, name, offset)[:3]

        def close(self) -> None:
            asked.append(("closed", 0))

    monkeypatch.setattr(ray, "RayCluster", Cluster)
    [url] = {place.url for cell in cells if (place := stored(cell))}
    fetch(one.folder, url, "head:6379")
    assert asked == [
        *((cell.machine, offset) for cell in cells for offset in (0, 3, 4)),
        ("closed", 0),
    ]
    for cell in cells:
        path = kept_recording(one.folder, cell)
        assert path is not None
        assert path.read_bytes() == b"fake"


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (lambda file: file.write_bytes(b"fakes"), "is not the file that the run wrote"),
        (lambda file: file.write_bytes(b"face"), "is not the file that the run wrote"),
        (lambda file: file.unlink(), "FileNotFoundError"),
    ],
)
def test_a_recording_that_changed_in_its_store_is_refused(
    spec: Make, run: Run, tmp_path: Path, harm: Callable[[Path], None], what: str
) -> None:
    once = {"profiles": spec().profiles[:1], "stopping": StoppingRule(1, 1)}
    one = spec(keep="one", store=f"file://{tmp_path}/shared", **once)
    cells = run(one, Machines()).results.manifest.cells
    [place] = [place for cell in cells if (place := stored(cell))]
    harm(Path(place.url.removeprefix("file://")) / place.name)
    with pytest.raises(FscostError, match=what):
        fetch(one.folder, place.url)
    with pytest.raises(InputError, match="leads out of"):
        stores.fetch(place.url, f"../{place.name}", tmp_path / "out", 4, place.sha256)
    assert not (tmp_path / "out").exists()
    assert not (one.folder / cells[0].recording).exists()


@pytest.mark.parametrize(
    ("url", "because"),
    [
        ("/mnt/shared", "is no URL"),
        ("file:///proc/shared", "file:///proc/shared/"),
        ("nonsense://a/b", "nonsense"),
        ("ftp://me:secret@there/a", "holds a password"),
        ("ftp://me:1/secret@there/a", "holds a password"),
        ("simplecache::ftp://me:secret@there/a", "holds a password"),
        ("https://there/a?signature=secret", "or a query"),
    ],
)
def test_a_store_that_takes_nothing_runs_no_cell(
    spec: Make, run: Run, url: str, because: str
) -> None:
    machines = Machines(("one",))
    with pytest.raises(HostError, match="no machine of the cluster"):
        run(spec(keep="one", store=url), machines)
    [line] = machines.said
    assert because in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "url",
    [
        "sftp://me@there/runs",
        "s3://bucket/runs",
        "abfs://container@account.dfs.core.windows.net/runs",
        "simplecache::file:///mnt/runs",
    ],
)
def test_a_name_of_a_user_is_no_secret(url: str) -> None:
    assert not stores._has_secret(url)


def test_a_few_cells_run_a_second_time_on_another_machine(spec: Make, run: Run, heard: Any) -> None:
    machines = Machines()
    outcome = run(spec(), machines)
    cells = outcome.results.manifest.cells
    again = second_runs(outcome)
    assert len(again) == 3
    assert all(fact["differ"] == [] for fact in again.values())
    machine_of = {cell.cell: cell.machine for cell in cells}
    assert all(fact["machine"] != machine_of[cell] for cell, fact in again.items())
    assert len(machines.begun) == len(cells) + 3
    assert [line for line in heard.lines if "elsewhere" in line] == [
        f"ran elsewhere {cell}" for cell in again
    ]
    assert outcome.results.manifest == load(spec().folder).manifest
    assert not any("second run" in line for line in view(outcome.results).cautions)
    assert view(outcome.results).conditions[-1].startswith("3 cells ran a second time")


def test_a_machine_that_writes_other_bytes_is_noticed(spec: Make, run: Run) -> None:
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    outcome = run(single, Machines(("one", "two"), adds_bytes={"two": 4096}))
    [cell] = outcome.results.manifest.cells
    assert {each["metric"] for each in cell.facts["second_run"]["differ"]} == {"device_write_bytes"}
    [caution] = [line for line in view(outcome.results).cautions if "second run" in line]
    assert caution.startswith(
        f"ext4, repetition 0: a second run on {cell.facts['second_run']['machine']} differs in"
        " device_write_bytes of write: "
    )


def test_a_machine_lost_during_a_second_run_is_no_failure(spec: Make, run: Run) -> None:
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    outcome = run(single, Machines(("one", "two"), dies={"two": 1}))
    assert outcome.results.manifest.state == "finished"
    [cell] = outcome.results.manifest.cells
    assert "second_run" not in cell.facts


def test_a_cell_that_takes_three_machines_down_fails(spec: Make, run: Run) -> None:
    machines = Machines(("one", "two", "three", "zero"), {"one": 1, "two": 1, "three": 1})
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    failed = run(single, machines).results.manifest.failed
    assert [(cell.kind, cell.because) for cell in failed] == [
        ("machine-lost", "the machines one, three, two were lost while they ran it")
    ]


def test_no_machine_left_ends_the_run_and_the_rest_can_be_resumed(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="no machine of the cluster is left") as caught:
        run(spec(), Machines(("one", "two"), {"one": 2, "two": 2}))
    assert "--resume" in str(caught.value.remedy)
    assert len(load(spec().folder).manifest.cells) == 2
    rest = Machines()
    outcome = run(spec(resume=True), rest)
    assert len(rest.begun) == 7 + 3
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


@pytest.mark.parametrize("at", range(1, 18, 2))
def test_an_interrupted_run_goes_on_exactly(
    spec: Make, go: Go, run: Run, tmp_path: Path, at: int
) -> None:
    first = run(spec(), Machines(interrupts_at=at))
    finished = len(first.results.manifest.cells)
    checked = second_runs(first)
    assert first.exit_code == (130 if at <= 15 else 0)
    rest = Machines()
    outcome = run(spec(resume=finished > 0), rest)
    assert len(rest.begun) == 9 - finished + 3 - len(checked)
    assert len(second_runs(outcome)) == 3
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


def test_a_repetition_runs_on_one_machine_where_machines_differ(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    outcome = run(spec(), Machines(), "one_machine")
    of_repetition = machines_of(outcome)
    assert [len(machines) for machines in of_repetition.values()] == [1, 1, 1]
    assert set().union(*of_repetition.values()) == {"one", "two", "three"}
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


def test_a_repetition_of_a_lost_machine_runs_again_from_its_beginning(
    spec: Make, go: Go, run: Run, heard: Any, tmp_path: Path
) -> None:
    """Also if the machine is lost between the run and its continuation."""
    machines = Machines(("one", "two"), {"one": 2}, interrupts_at=7)
    outcome = run(spec(), machines, "one_machine")
    assert outcome.interrupted
    assert heard.lines.count("runs again 0, of one") == 1
    outcome = run(spec(resume=True), Machines(("three",)), "one_machine")
    assert any(line.startswith("runs again") and line.endswith("of two") for line in heard.lines)
    assert [len(found) for found in machines_of(outcome).values()] == [1, 1, 1]
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))
    assert numbers(outcome) == numbers(RunOutcome(load(spec().folder)))


def test_a_repetition_of_another_machine_is_not_continued_here(
    spec: Make, go: Go, run: Run
) -> None:
    run(spec(), Machines(interrupts_at=5), "one_machine")
    with pytest.raises(HostError, match=r"began on the machine .* cells of different machines"):
        go(spec(resume=True), FakeLab(is_same_everywhere=False))


def test_a_machine_whose_disk_is_full_runs_no_further_cell(
    spec: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = itertools.count()
    real = FakeLab.run

    def full(lab: FakeLab, cell: Any, *how: Any) -> CellResult:
        if next(first) == 0:
            return CellResult(cell, "failed", "no space is left", kind="host-disk-full")
        return real(lab, cell, *how)

    monkeypatch.setattr(FakeLab, "run", full)
    machines = Machines()
    outcome = run(spec(), machines)
    assert len(outcome.results.manifest.done) == 9
    assert machines.said == ["machine one is out of the run: no space is left"]


def test_the_killed_worker_s_folder_is_removed_by_the_next(tmp_path: Path) -> None:
    question = Question(LabSpec("fake"), f"fscost.test.{os.getpid()}.{tmp_path.name}", (), 0, 0)
    left = tmp_path / "workers" / "fscost-worker-left"
    (left / "cells").mkdir(parents=True)
    (left / "held").touch()
    one = worker.Worker()
    assert one.open(question) is None
    with suppress(FileNotFoundError):
        assert not left.exists()
    worker.sweep()  # leaves the folder that is in use
    assert len(list((tmp_path / "workers").iterdir())) == 1
    other = worker.Worker()
    assert "another fscost run is in progress" in str(other.open(question))
    one.close()


def report(lanes: int = 1, reasons: dict[str, str] | None = None, **identity: str) -> Report:
    return Report({}, {"fscost": "1.0", **identity}, lanes, 0, True, 1.0, reasons or {})


@pytest.mark.parametrize(
    ("reports", "kept", "said"),
    [
        ({"a": "fscost is not installed there", "b": report()}, "b", "fscost is not installed"),
        (
            {"a": report(QEMU="7"), "b": report(QEMU="10"), "c": report(QEMU="10")},
            "bc",
            "its QEMU is '7', and that of other machines is '10'",
        ),
        ({"a": report(), "b": report(tar="1")}, "a", "its tar is '1', and that of other"),
        (
            {"a": report(reasons={"xfs": "mkfs.xfs is missing"}), "b": report()},
            "b",
            "mkfs.xfs is missing",
        ),
        (
            {"a": report(reasons={"jfs": "no jfs"}), "b": report(reasons={"jfs": "no jfs"})},
            "ab",
            "",
        ),
        ({"a": "x", "b": "y"}, "", "x"),
    ],
)
def test_machines_that_differ_are_skipped_aloud(reports: Reports, kept: str, said: str) -> None:
    lines: list[str] = []
    assert "".join(agreed(reports, lines.append)) == kept
    assert len(lines) == len(reports) - len(kept)
    assert said in "".join(lines[:1])
