"""One cell from start to end: the fate of its recording, and the data that can be sent to another
process."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fscost.errors import InputError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.fake import FakeLab
from fscost.matrix import Cell, repetitions
from fscost.run import RunSpec
from fscost.run.after import explained
from fscost.run.measure import Task, measure
from fscost.wear import find

Make = Callable[..., RunSpec]


class Recorded(FakeLab):
    """A fake lab that leaves a stand-in for the recording of a lab that records."""

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        result = super().run(cell, options, on_step)
        result.recorded = [None]  # type: ignore[list-item]
        return result


@pytest.fixture
def task(spec: Make, tmp_path: Path) -> Task:
    made = spec()
    cell = next(repetitions(made.profiles, made.workload, made.seed))[0]
    (tmp_path / "cell").mkdir()
    return Task(cell, LabOptions(tmp_path / "cell", 1 << 20), keep_recording=True)


def left(task: Task) -> list[str]:
    return sorted(path.name for path in task.options.cell_dir.iterdir())


def test_task_and_result_can_be_sent(task: Task) -> None:
    sent = pickle.loads(pickle.dumps(task))
    result = measure(FakeLab(), sent, lambda _: None)
    again = pickle.loads(pickle.dumps(result))
    assert (sent, again) == (task, result)


def test_ctrl_c_while_it_is_explained_leaves_no_recording(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(explained, "add_to", interrupt)
    monkeypatch.setattr("fscost.run.measure.first_writes.add_to", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        measure(Recorded(), task, lambda _: None)
    assert left(task) == ["output.log"]


@pytest.mark.parametrize(
    ("module", "error", "because"),
    [
        ("first_writes", InputError("frame 3 is damaged", ""), "frame 3 is damaged"),
        ("timed", OSError(28, "No space left on device"), "No space left on device"),
        ("replayed", InputError("frame 3 is damaged", ""), "frame 3 is damaged"),
        ("modelled", InputError("frame 3 is damaged", ""), "frame 3 is damaged"),
        ("worn", InputError("frame 3 is damaged", ""), "frame 3 is damaged"),
    ],
)
def test_what_cannot_be_computed_is_missing_alone(
    task: Task, monkeypatch: pytest.MonkeyPatch, module: str, error: Exception, because: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    done = []
    names = ("first_writes", "timed", "replayed", "modelled", "worn")
    for name in names:
        noted = fails if name == module else lambda *_, name=name: done.append(name)
        monkeypatch.setattr(f"fscost.run.measure.{name}.add_to", noted)
    monkeypatch.setattr(explained, "add_to", lambda *_, **__: None)
    wanted = replace(task, ssd="sata-ssd", replay={"main": "hdd-7200"}, wear_device=find("sd-card"))
    result = measure(Recorded(), wanted, lambda _: None)
    assert result.status == "done"
    assert done == [name for name in names if name != module]
    assert list(result.facts["not_computed"].values()) == [because]
    assert left(task) == ["output.log", "recording.fsc"]
