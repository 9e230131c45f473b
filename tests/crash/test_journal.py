"""Answers outlast an examination that was interrupted, whenever that was."""

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fscost.crash.journal import FILE, Asked, Journal, answers
from fscost.crash.programs import About, Finished, Job
from fscost.errors import InputError

ASKED = Asked("files", "reorder-4k", 40, 24, 1, 0, lose_disks=False, lab="native", kernel="6.18")
JOBS: Sequence[Job] = [{"at_ns": number} for number in range(4)]


class Examiners:
    """Answers jobs backwards, and is interrupted after some."""

    def __init__(self, most: int = 99) -> None:
        self.most, self.asked = most, list[int]()

    def __call__(self, about: About, jobs: Sequence[Job], finished: Finished) -> None:
        for place, job in reversed(list(enumerate(jobs))):
            if len(self.asked) == self.most:
                raise KeyboardInterrupt
            self.asked.append(job["at_ns"])
            finished(place, {"answer": job["at_ns"], "about": about["type"]})


def examined(journal: Journal | None, examiners: Examiners, folder: str) -> Any:
    said = []
    about = {"type": "ext4", "recording": folder}
    answered = answers(examiners, "ext4", journal)
    found = answered(about, JOBS, lambda done, of: said.append((done, of)))
    return found, said


def test_no_answer_is_kept_through_a_link(tmp_path: Path) -> None:
    Journal.begin(tmp_path, ASKED)
    (tmp_path / FILE).rename(tmp_path / "victim")
    (tmp_path / FILE).symlink_to("victim")
    before = (tmp_path / "victim").read_bytes()
    with pytest.raises(InputError, match=f"{FILE} is a symbolic link"):
        examined(Journal.resume(tmp_path), Examiners(), "here")
    assert (tmp_path / "victim").read_bytes() == before


def test_an_examination_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    whole, said = examined(None, Examiners(), "here")
    assert said == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(KeyboardInterrupt):
        examined(Journal.begin(tmp_path, ASKED), Examiners(2), "here")
    journal = Journal.resume(tmp_path)
    assert journal.asked == ASKED
    rest = Examiners()
    assert examined(journal, rest, "there") == (whole, [(3, 4), (4, 4)])
    assert rest.asked == [1, 0]
    journal.end()
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="no examination to resume"):
        Journal.resume(tmp_path)


def test_an_answer_is_not_held(tmp_path: Path) -> None:
    """Those of 960 states may take a gigabyte."""

    class Answer(dict[str, Any]):
        pass

    held = []

    def examine(about: About, jobs: Sequence[Job], finished: Finished) -> None:
        for place in range(len(jobs)):
            answer = Answer(mounts=True)
            known = weakref.ref(answer)
            finished(place, answer)
            del answer
            held.append(known() is not None)

    answered = answers(examine, "ext4", Journal.begin(tmp_path, ASKED))
    kept = answered({"type": "ext4"}, JOBS, lambda done, of: None, lambda place, _: place)
    assert (kept, held) == ([0, 1, 2, 3], [False] * 4)


def test_another_profile_has_other_answers(tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, ASKED)
    examined(journal, Examiners(), "here")
    journal = Journal.resume(tmp_path)
    about = {"type": "ext4", "recording": "here"}
    again = Examiners()
    answers(again, "ext4 -o nobarrier", journal)(about, JOBS, lambda done, of: None)
    answers(again, "ext4", journal)({**about, "type": "ext3"}, JOBS, lambda done, of: None)
    assert len(again.asked) == 8


@pytest.mark.parametrize("cut", range(2, 60, 7))
def test_a_line_that_was_being_written_does_not_count(tmp_path: Path, cut: int) -> None:
    whole, _ = examined(Journal.begin(tmp_path, ASKED), Examiners(), "here")
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-cut])
    first = Examiners()
    journal = Journal.resume(tmp_path)
    assert examined(journal, first, "here")[0] == whole
    assert first.asked == [0]
    second = Examiners()
    assert examined(Journal.resume(tmp_path), second, "here")[0] == whole
    assert second.asked == []


@pytest.mark.parametrize("first", ["", "{", "[]", '{"workload": 1}', "[" * 100_000])
def test_a_damaged_first_line_is_one_error(tmp_path: Path, first: str) -> None:
    (tmp_path / FILE).write_text(f"{first}\n")
    with pytest.raises(InputError, match=FILE):
        Journal.resume(tmp_path)
