"""The sequences of system calls: each can run, and each has a name of its own."""

import os
from pathlib import Path

import pytest

from fscost.crash import sequences
from fscost.errors import InputError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("length", "count"), [(1, 10_000), (2, 10_000), (3, 500)])
def test_each_sequence_runs(
    here: Path, monkeypatch: pytest.MonkeyPatch, length: int, count: int
) -> None:
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda file, name=name: synced.append(name))
    found = sequences.sequences(length, count)
    sequences.prepare(found)
    sequences.run(found)
    assert [path.name for path in sorted(here.iterdir())] == [
        f"{number:04} {each}" for number, each in enumerate(found)
    ]
    assert synced == [each.sync for each in found]
    assert here == Path.cwd()


def test_all_single_calls_are_in_it() -> None:
    found = sequences.sequences(1, 10_000)
    assert len({str(each) for each in found}) == len(found) == 62
    assert [str(each) for each in sequences.sequences(1, 5)] == [
        str(each) for each in sequences.sequences(1, 5)
    ]


def test_what_a_call_needs_is_made_by_the_one_before_or_given() -> None:
    named = {str(each): each for each in sequences.sequences(2, 100_000)}
    moved = named["creat A.bar, rename A.foo A.bar over a file, fsync A.bar"]
    assert moved.given == {"A/foo"}
    assert "unlink A.foo, append A.foo, fsync A.foo" not in named
    assert "creat A.bar, creat A.bar, fsync A.bar" not in named


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_sequence_is_read_from_its_words(length: int) -> None:
    for each in sequences.sequences(length, 2000):
        assert sequences.parsed(str(each)) == each


def test_parts_of_a_sequence_are_possible_and_the_shortest_come_first() -> None:
    text = "creat A.bar, unlink A.foo, rename A.foo A.bar over a file, fsync A.bar"
    with pytest.raises(InputError, match="is impossible"):
        sequences.parsed(text)
    text = "append A.foo, link A.foo A.bar, rename A.foo A.bar over a file, fsync A.bar"
    assert [str(each) for each in sequences.parsed(text).parts] == [
        "rename A.foo A.bar over a file, fsync A.bar",
        "append A.foo, rename A.foo A.bar over a file, fsync A.bar",
        "link A.foo A.bar, rename A.foo A.bar over a file, fsync A.bar",
        text,
    ]


def test_a_call_that_needs_another_is_not_left_alone_with_a_third() -> None:
    make = sequences.Call("make", int, refuses=("x",), touched=("x",), makes=("x",))
    remove = sequences.Call("remove", int, needs=("x",), removes=("x",))
    parts = sequences.Sequence((make, remove, make), "fsync", "x").parts
    found = [[each.words for each in part.calls] for part in parts]
    assert found == [
        ["make"],
        ["make"],
        ["make", "remove"],
        ["remove", "make"],
        ["make", "remove", "make"],
    ]
