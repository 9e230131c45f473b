"""The verdict is the worst that was seen in any state."""

from dataclasses import replace

import pytest

from fscost.crash.explore import Exploration, Outcome, State
from fscost.crash.verdict import Verdict, judged

STATE = State(1_500_000_000, "prefix", [0, 1], 3)


def outcome(
    *broken: tuple[str, str], mounts: bool = True, is_clean: bool = True, needs_repair: bool = False
) -> Outcome:
    return Outcome(STATE, mounts, is_clean, needs_repair, broken)


@pytest.mark.parametrize(
    ("outcomes", "verdict", "example"),
    [
        ([outcome(), outcome()], Verdict.SAFE, ""),
        ([outcome(needs_repair=True)], Verdict.NEEDS_REPAIR, "which a repair corrects"),
        ([outcome(("stale", "log, record 1"))], Verdict.EXPOSES_STALE, "bytes of another file"),
        ([outcome(("lost", "log (missing)"))], Verdict.LOSES_ACKED, "log (missing) is not what"),
        ([outcome(("dated", "log"))], Verdict.LOSES_ACKED, "log has another modification time"),
        ([outcome(("torn", "config"))], Verdict.LOSES_ACKED, "neither the old nor the new"),
        ([outcome(("damaged", "app.db (a row is missing)"))], Verdict.CORRUPTS, "is not sound"),
        ([outcome(("emptied", "swap (0 bytes)"))], Verdict.SAFE, ""),
        ([outcome(is_clean=False)], Verdict.CORRUPTS, "that no repair corrects"),
        ([outcome(mounts=False, is_clean=False)], Verdict.CORRUPTS, "cannot be mounted"),
        (
            [outcome(("lost", "log")), outcome(), outcome(needs_repair=True)],
            Verdict.LOSES_ACKED,
            "state 1, cut at 1.5000 s, 2 of 3 pending blocks kept (prefix): log",
        ),
    ],
)
def test_the_worst_state_decides(outcomes: list[Outcome], verdict: Verdict, example: str) -> None:
    found = judged(Exploration(outcomes, 1, len(outcomes)))
    assert found.verdict is verdict
    assert example in found.example


def test_states_are_counted_by_fault() -> None:
    both = outcome(("lost", "log"), ("stale", "mail-1"), needs_repair=True)
    found = judged(Exploration([both, outcome(("lost", "log")), outcome()], 1, 3))
    assert found.counts == {"LOSES-ACKED": 2, "EXPOSES-STALE": 1, "NEEDS-REPAIR": 1}


def test_what_no_call_promised_is_counted_apart() -> None:
    emptied = outcome(("emptied", "swap (0 bytes)"))
    found = judged(Exploration([emptied, outcome(), outcome(("lost", "log"))], 1, 3))
    assert (found.emptied, found.counts) == (1, {"LOSES-ACKED": 1})
    assert not emptied.is_broken


def test_a_loss_of_which_nothing_says_a_word_is_silent() -> None:
    lost = ("lost", "log")
    silent = [outcome(lost), outcome(("stale", "log, record 1"))]
    told = [
        outcome(),
        outcome(("emptied", "swap (0 bytes)")),
        outcome(lost, needs_repair=True),
        outcome(lost, is_clean=False),
        outcome(lost, mounts=False),
        replace(outcome(lost), words=["mount(2) of DISK failed: Structure needs cleaning"]),
        outcome(("unreadable", "log (Input/output error)")),
    ]
    assert judged(Exploration([*silent, *told], 1, 9)).silent == 2


def test_the_longest_repair_is_kept() -> None:
    took = [replace(outcome(needs_repair=True), repair_s=each) for each in (0.2, 0.7, 0.1)]
    assert judged(Exploration([*took, outcome()], 1, 4)).repair_s == 0.7
    assert judged(Exploration([outcome()], 1, 1)).repair_s == 0
