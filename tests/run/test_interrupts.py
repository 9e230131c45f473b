"""A signal ends a run, even if C code drops the exception that the handler raised."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.run.conftest import Heard

from fscost.errors import Terminated
from fscost.matrix import Cell
from fscost.results import CellRecord, load
from fscost.run import RunOutcome, RunSpec

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]


def drop(number: int) -> None:
    """Send a signal to this process, and drop the exception, as pyarrow does."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal whose handler raises."""

    def handler(number: int, frame: object) -> None:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(signal.Signals(number))

    before = signal.signal(request.param, handler)
    yield request.param
    assert signal.getsignal(request.param) is handler
    signal.signal(request.param, before)


def test_a_dropped_signal_after_a_cell_ends_the_run_before_the_next(
    spec: Make, go: Go, heard: Heard, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def cell_ends(record: CellRecord, remaining_s: tuple[float, float]) -> None:
        heard.lines.append(f"ends {record.cell}")
        if heard.count("ends ") == 2:
            drop(number)

    monkeypatch.setattr(heard, "cell_ends", cell_ends)
    outcome = go(spec())
    assert outcome.exit_code == 128 + number
    assert len(load(spec().folder).manifest.cells) == 2
    assert outcome.results.manifest.state == "interrupted"
    assert go(spec(resume=True)).exit_code == 0  # nothing of the signal is left for the next run


def test_a_dropped_signal_before_the_first_cell_ends_the_run(
    spec: Make, go: Go, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heard, "starts", lambda *_: drop(signal.SIGINT))
    assert go(spec()).interrupted
    assert heard.count("cell ") == 0
    assert not spec().folder.exists()


def test_a_dropped_signal_after_the_last_cell_is_the_callers(
    spec: Make, go: Go, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is finished. The caller may have more to do, such as the next run of a suite."""
    monkeypatch.setattr(heard, "ends", lambda *_: drop(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        go(spec())
    assert load(spec().folder).manifest.state == "finished"


def test_a_handler_that_replaced_itself_is_not_put_back(
    spec: Make, go: Go, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Terminated(signal.SIGTERM)

    def cell_starts(cell: Cell, running: int) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(heard, "cell_starts", cell_starts)
    before = signal.signal(signal.SIGTERM, once)
    try:
        assert go(spec()).terminated
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_run_in_another_thread_leaves_signals_alone(spec: Make, go: Go, tmp_path: Path) -> None:
    outcomes: list[RunOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(go(spec())))
    thread.start()
    thread.join()
    assert [outcome.exit_code for outcome in outcomes] == [0]
