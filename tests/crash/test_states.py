"""The states with faults outlast the command, and a damaged list of them is one clear error."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fscost.cli.examine import Number
from fscost.crash import states
from fscost.crash.again import Again, Numbers, Second
from fscost.crash.explore import Exploration, Outcome, State
from fscost.crash.verdict import worse
from fscost.errors import InputError
from fscost.view.crash_state import minimised_words

PROFILE = "ext4 -o nobarrier"
FEWEST = states.Fewest(2, (1, 2), 1, 2, 5, True, ("file_data of /log",))


def outcome(at_ns: int, *broken: tuple[str, str]) -> Outcome:
    return Outcome(State(at_ns, "prefix", [0, 2], 3), True, True, False, broken)


def second(found: Outcome, place: int) -> Second:
    first = outcome(10, ("stale", "mail-1"))
    numbers = Numbers(1, place, first.state, 4, "none", (), 7, "abc")
    return Second(numbers, found, worse(first, found))


@pytest.fixture
def saved(tmp_path: Path) -> states.Findings:
    outcomes = [outcome(10), outcome(20, ("stale", "mail-1"), ("lost", "log")), outcome(30)]
    found = states.findings(
        "files",
        "reorder-4k",
        {PROFILE: Exploration(outcomes, 1, 3), "xfs": Exploration([], 0, 0)},
        {PROFILE: Again([second(outcome(10), 1), second(outcomes[1], 2)], 1)},
        {PROFILE: FEWEST},
    )
    states.save(tmp_path, found)
    return found


def test_the_states_are_not_kept_through_a_link(saved: states.Findings, tmp_path: Path) -> None:
    (tmp_path / states.FILE).rename(tmp_path / "victim")
    (tmp_path / states.FILE).symlink_to("victim")
    with pytest.raises(InputError, match=r"crash\.json is a symbolic link"):
        states.save(tmp_path, replace(saved, device="in-order"))
    assert states.load(tmp_path) == saved


def test_how_many_lost_blocks_break_a_promise_is_said_in_words() -> None:
    assert minimised_words(FEWEST) == (
        "Enough to break it, of 2 lost blocks: 1 (file_data of /log). The others are kept."
    )
    alone = replace(FEWEST, lost_before=1)
    assert minimised_words(alone) == "The lost block alone breaks it: file_data of /log."


def test_only_states_with_faults_are_kept(saved: states.Findings, tmp_path: Path) -> None:
    assert states.load(tmp_path) == saved
    [broken] = saved.states[PROFILE]
    assert (broken.number, broken.state) == (2, State(20, "prefix", (0, 2), 3))
    assert broken.faults == ("log is not what was promised", "mail-1 holds bytes of another file")
    assert states.chosen(saved, PROFILE, 2) is broken
    assert saved.verdicts == {PROFILE: "LOSES-ACKED", "xfs": "SAFE"}
    assert saved.examined == {PROFILE: 3, "xfs": 0}
    assert saved.minimised == {PROFILE: FEWEST}


def test_a_second_state_is_broken_if_its_first_was_not(
    saved: states.Findings, tmp_path: Path
) -> None:
    """The first state holds stale bytes too, so that these are no fault of the second cut."""
    [broken] = states.load(tmp_path).again[PROFILE]
    assert broken.faults == ("log is not what was promised",)
    chosen = states.chosen_again(saved, PROFILE, 1, 2)
    first = State(10, "prefix", (0, 2), 3)
    assert chosen.numbers == Numbers(1, 2, first, 4, "none", (), 7, "abc")
    with pytest.raises(InputError, match=r"its first are 1\.2"):
        states.chosen_again(saved, PROFILE, 1, 1)


@pytest.mark.parametrize("text", ["", "0", "1.", "1.0", ".1", "1.2.3", "-1", "x", "1" * 30])
def test_a_wrong_number_of_a_state_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no number of a state"):
        Number.parse(text)
    assert [Number.parse("12"), Number.parse("12.3")] == [Number(12), Number(12, 3)]


@pytest.mark.parametrize(
    ("profile", "number", "remedy"),
    [(PROFILE, 1, "its first are 2"), ("xfs", 1, "its verdict is SAFE")],
)
def test_a_state_without_a_fault_is_refused(
    saved: states.Findings, profile: str, number: int, remedy: str
) -> None:
    with pytest.raises(InputError, match=remedy):
        states.chosen(saved, profile, number)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workload", "mail", "'mail' is unknown"),
        ("device", "perfect", "'perfect' is unknown"),
        ("device", None, "device"),
        ("verdicts", {PROFILE: "FINE"}, "'FINE' is unknown"),
        ("verdicts", {PROFILE: 1}, "is a number, not a string"),
        ("states", [], "states"),
        ("states", {PROFILE: [{"number": 1}]}, "is missing"),
        (
            "states",
            {
                PROFILE: [
                    {"number": 1, "at_ns": -1, "how": "", "kept": [], "pending": 0, "faults": []}
                ]
            },
            "at_ns",
        ),
    ],
)
def test_a_wrong_value_is_named(
    saved: states.Findings, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    path = tmp_path / states.FILE
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {field: value}))
    with pytest.raises(InputError, match=words):
        states.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_what_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / states.FILE).write_bytes(content)
    with pytest.raises(InputError, match=states.FILE):
        states.load(tmp_path)


def test_a_run_of_another_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no run of `fscost crash`"):
        states.load(tmp_path)
