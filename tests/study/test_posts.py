"""Runs of several studies on one page."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fscost.errors import InputError
from fscost.report import posts
from fscost.study import Report
from fscost.view.posts import posts as shown

Reported = Callable[..., Report]


def nothing(short: str, phase: str, metric: str, repetition: int) -> float:
    """Samples in which every profile costs the same."""
    return 1e8 + repetition


def half(short: str, phase: str, metric: str, repetition: int) -> float:
    """Samples in which a journal halves the bytes written."""
    return 1e8 * (2 if short.endswith("_nj") or short == "ext2" else 1) + repetition


def test_verdicts_stand_side_by_side_under_each_kernel(reported: Reported) -> None:
    page = shown(
        [
            reported("journal-tax", {"6.1": nothing, "6.12": half}),
            reported("snapshot-atime"),
            reported(
                "journal-tax", nothing, skip={"ext3": "mount failed\n  the kernel  said: no."}
            ),
        ]
    )
    assert page.title == "What two famous posts got right"
    tax, snapshots = page.posts
    assert tax.verdicts.header[1:] == ("6.1 (guest)", "6.12 (guest)", "6.1.0")
    assert tax.verdicts.rows[0][1:] == ("not reproduced here", "reversed", "inconclusive")
    assert (
        tax.runs[-1] == "Not measured: ext3-strictatime, because mount failed; the kernel said: no."
    )
    assert ("journal-tax", "6.12 (guest)") in [row[:2] for row in page.summary.rows]
    assert all(row[-1] in ("holds", "fails", "reversed") for row in tax.decided.rows)
    assert len(tax.decided.rows) == tax.table.num_rows
    assert any("nothing measured" not in line and "under 6.1" in line for line in tax.undecided)
    assert "snapshot-atime: no run under 6.1 (guest), 6.12 (guest)" in page.missing
    assert snapshots.decided.rows


def test_the_page_names_its_pictures(reported: Reported, tmp_path: Path) -> None:
    out = tmp_path / "posts.md"
    made = posts.write([reported("journal-tax", half)], out, "fscost study page a_b")
    text = out.read_text()
    picture = tmp_path / "posts" / "journal-tax.svg"
    assert made == [out, picture]
    assert "](posts/journal-tax.svg)" in text
    assert text.startswith("# What one famous post got right\n")
    assert "$ fscost study page a_b" in text
    assert "| Journaling nearly doubles metadata-only writes (make clean) | reversed |" in text
    for part in (
        "Open criteria, counted by reason:",
        "Decided criteria:",
        "## What was not run",
    ):
        assert re.search(rf"\n{re.escape(part)}\n\n[-|] ?\S", text), part
    svg = picture.read_text()
    assert "make clean" in svg
    assert "<metadata>" in svg


def test_a_study_without_decisions_has_no_picture(reported: Reported, tmp_path: Path) -> None:
    out = tmp_path / "posts.md"
    assert posts.write([reported("journal-tax", half, repetitions=1)], out, "x") == [out]
    assert "posts/" not in out.read_text()


def test_runs_under_one_kernel_are_told_apart_and_open_claims_are_named(reported: Reported) -> None:
    page = shown([reported("journal-tax", half)] * 2 + [reported("snapshot-atime")])
    tax, snapshots = page.posts
    assert tax.verdicts.header[1:] == ("6.1.0, small, 1", "6.1.0, small, 2")
    assert snapshots.verdicts.header[1:] == ("6.1.0",)
    open_ = [row[0] for row in tax.verdicts.rows if row[1:] == ("inconclusive", "inconclusive")]
    open_ += [row[0] for row in snapshots.verdicts.rows if row[1:] == ("inconclusive",)]
    total = len(tax.verdicts.rows) + len(snapshots.verdicts.rows)
    never = [row[0] for row in tax.verdicts.rows if row[1:] == ("cannot be tested",) * 2]
    assert never == ["First-generation SSDs erased 128 KiB for a write of 4 KiB"]
    assert page.count == (
        f"Of {total} claims, {total - len(open_) - 1} have a verdict in at least one run."
    )
    assert [line.split(": ", 1)[1] for line in page.others["Without one:"]] == open_
    [untestable] = page.others["Cannot be tested:"]
    assert untestable.startswith(f"journal-tax: {never[0]}: data sheets decide it")
    assert not any("data sheets" in line for line in tax.undecided)


def test_a_criterion_that_is_decided_by_its_range_is_not_drawn(reported: Reported) -> None:
    skip = dict.fromkeys(("jfs", "nilfs2", "reiserfs"), "not in this kernel")
    [post] = shown([reported("nine-filesystems", lambda *_: 10.0, skip=skip)]).posts
    assert any(row[4].startswith("at most") for row in post.decided.rows)
    assert None not in post.table["median"].to_pylist()
    assert len(post.decided.rows) > post.table.num_rows > 0


def test_an_answer_begins_its_post(reported: Reported) -> None:
    reports = [reported("journal-tax", half), reported("snapshot-atime")]
    answers = {"snapshot-atime": "Right about *all* of it."}
    page = posts.text(shown(reports, answers), {}, "x")
    assert re.search(
        r"## snapshot-atime: .*\n\nPublished: .*\n\nRight about \*all\* of it\.\n", page
    )
    with pytest.raises(InputError, match="'other', but no run"):
        shown(reports, {"other": ""})
