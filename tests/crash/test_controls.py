"""Controls: what must be found, and what must not."""

from fscost.crash.controls import KNOWN, Known
from fscost.crash.verdict import FAULTS
from fscost.view.controls import controls_view

NONE = dict.fromkeys((*FAULTS.values(), "silent", "emptied"), 0)


def test_a_known_fault_must_be_found_and_no_other() -> None:
    known = Known("ext4 -o nobarrier", "in-order", some=("lost",), none=("corrupt",))
    assert known.is_right(NONE | {"lost": 2, "repaired": 1})
    assert not known.is_right(NONE)
    assert not known.is_right(NONE | {"lost": 2, "corrupt": 1})


def test_a_safe_profile_may_have_none() -> None:
    safe = Known("ext4")
    assert safe.is_safe
    assert safe.is_right(NONE | {"emptied": 5})
    for word in FAULTS.values():
        assert not safe.is_right(NONE | {word: 1})


def test_both_kinds_are_there_for_each_family() -> None:
    for family in ("ext", "btrfs", "xfs"):
        own = [each for each in KNOWN if each.profile.startswith(family)]
        assert any(each.some for each in own)
        assert any(each.is_safe for each in own)


def test_a_wrong_one_is_told() -> None:
    view = controls_view(
        [
            (Known("ext4"), 9, NONE | {"lost": 1}),
            (Known("xfs", some=("emptied",)), 8, NONE | {"emptied": 7}),
        ]
    )
    assert view.title == "Controls: 1 of 2 are right"
    assert [list(row)[2:] for row in view.grid.rows] == [
        ["–", "any fault", "9", "1 lost", "NO"],
        ["emptied", "any fault", "8", "7 emptied", "yes"],
    ]
    assert [row["is_right"] for row in view.rows] == [False, True]
