"""The workload that promises nothing: how many seconds of its work are lost."""

from pathlib import Path

import pytest

from fscost.crash import unsynced
from fscost.crash.explore import Exploration, Outcome, State
from fscost.crash.unsynced import STEPS, broken, record
from fscost.crash.verdict import Verdict, judged


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which a round ran."""
    steps: list[int] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(unsynced, "STEP_S", 0)
    monkeypatch.setattr(unsynced, "say_kept", lambda pause_s, step: steps.append(step))
    unsynced.prepare()
    unsynced.run(1)
    assert steps == list(range(1, STEPS + 1))
    monkeypatch.setattr(unsynced, "STEP_S", 0.25)
    return tmp_path


def test_what_is_there_loses_nothing(made: Path) -> None:
    for step in (0, 1, STEPS):
        assert list(broken(made, {"step": step})) == []
    assert list(broken(made, {})) == []


def test_an_empty_disk_loses_all_of_it(tmp_path: Path) -> None:
    assert list(broken(tmp_path, {"step": STEPS})) == [("data_lost", "10"), ("names_lost", "10")]
    assert list(broken(tmp_path, {})) == []


def test_what_follows_the_first_loss_is_lost(made: Path) -> None:
    (made / "names/11").unlink()
    log = made / "log"
    log.write_bytes(b"".join(record(n) for n in range(1, 31)) + bytes(512) + record(32))
    assert list(broken(made, {"step": STEPS})) == [("data_lost", "2.5"), ("names_lost", "7.5")]
    # Nobody had written the lost ones at an earlier cut.
    assert list(broken(made, {"step": 10})) == []


def test_other_bytes_are_stale(made: Path) -> None:
    (made / "log").write_bytes(record(1) + b"secret".ljust(512))
    assert list(broken(made, {"step": 1})) == [("stale", "log")]


def test_lost_seconds_are_allowed_unless_something_else_is_wrong() -> None:
    def outcome(*kinds: tuple[str, str]) -> Outcome:
        return Outcome(State(5, "none", [], 1), True, True, False, kinds)

    some = [outcome(("data_lost", "2.5"), ("names_lost", "1")), outcome(("data_lost", "7"))]
    found = judged(Exploration([*some, outcome()], 1, 3))
    assert found.verdict is Verdict.ALLOWED_LOSS
    assert (found.counts, found.silent, found.example) == ({}, 0, "")
    assert found.lost_s == {"data_lost": [2.5, 7, 0], "names_lost": [1, 0, 0]}
    assert judged(Exploration([outcome()], 1, 1)).verdict is Verdict.SAFE
    stale = judged(Exploration([*some, outcome(("stale", "log"))], 1, 3))
    assert stale.verdict is Verdict.EXPOSES_STALE
