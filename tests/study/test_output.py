"""The report in each form, compared with files that a person has reviewed.

After an intended change run FSCOST_UPDATE_GOLDEN=1 make test PYTEST=tests/study/test_output.py,
then review the difference.
"""

import json
from collections.abc import Callable

import pytest
from tests.reviewed import check

from fscost.report.study import json_text, markdown_text, terminal_text
from fscost.study import Report
from fscost.view.study import study_view

MIB = 1 << 20
STRICT, WRITTEN = "ext4-strictatime", "device_write_bytes"
Reported = Callable[..., Report]
FORMS: dict[str, Callable[[Report], str]] = {
    "study-100.txt": lambda report: terminal_text(study_view(report), 100),
    "study.md": lambda report: markdown_text(study_view(report)),
    "study.json": json_text,
}


def numbers(short: str, phase: str, metric: str, repetition: int) -> float | None:
    """Samples in which a journal costs a tenth and access times cost the expected amount."""
    if metric == "wall_s":
        return 3.0
    if metric not in ("device_write_bytes", "journal_write_bytes", "atime_write_bytes"):
        return None
    size = {"clone": 80.0, "make": 50.0, "clean": 2.0, "read": 0.01, "read-again": 0.01}.get(
        phase, 1.0
    )
    atime = {
        "strict": 1.0,
        "strict_nj": 1.0,
        "ext3": 1.0,
        "ext2": 1.0,
        "relatime": 0.4,
        "relatime_nj": 0.4,
    }.get(short, 0.0)
    size += atime * {
        "clone": 0,
        "make": 2,
        "clean": 0.4,
        "read": 3,
        "read-again": 3 if short == "strict" else 0,
    }.get(phase, 0)
    journal = (
        1.0
        if short.endswith("_nj") or short == "ext2"
        else 1.9
        if phase == "clean"
        else 1.08 + 0.06 * atime
    )
    part = {"journal_write_bytes": 1 - 1 / journal, "atime_write_bytes": 0.1 * atime}.get(
        metric, 1.0
    )
    return MIB * size * journal * part * (1 + 0.004 * ((repetition + len(short)) % 3))


@pytest.fixture
def report(reported: Reported) -> Report:
    """The report of a run in which one profile could not run."""
    return reported(
        "journal-tax", numbers, skip={"ext2": "ext2 is not in this kernel: boot one that has it"}
    )


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_as_it_was_looked_at(report: Report, name: str) -> None:
    text = FORMS[name](report)
    check(name, text)


@pytest.mark.parametrize("study", ["journal-tax", "nine-filesystems", "snapshot-atime"])
@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal(reported: Reported, study: str, width: int) -> None:
    text = terminal_text(study_view(reported(study)), width)
    assert max(len(line) for line in text.splitlines() if not line.startswith("Results:")) <= width
    assert "\x1b" not in text


def test_the_json_gives_what_decided_each_verdict(report: Report) -> None:
    value = json.loads(json_text(report))
    assert {claim["verdict"] for claim in value["claims"]} <= {
        "reproduced",
        "partly",
        "not reproduced here",
        "inconclusive",
        "cannot be tested",
    }
    for claim in value["claims"]:
        for criterion in claim["criteria"]:
            assert {
                "formula",
                "at_least",
                "at_most",
                "published",
                "n",
                "median",
                "low",
                "high",
                "outcome",
            } <= set(criterion)
    clean = next(
        entry
        for entry in value["comparisons"]
        if (entry["title"], entry["phase"]) == ("strictatime", "clean")
    )
    assert clean["of_with"]["published"] == pytest.approx(0.4726, abs=1e-4)
    assert clean["of_without"]["published"] == pytest.approx(0.896, abs=1e-3)
    assert clean["of_with"]["median"] == pytest.approx(1 - 1 / 1.9, abs=0.01)
    assert value["skipped"][0]["profile"] == "ext2-strictatime"


def test_under_several_kernels_verdicts_stand_side_by_side_and_tables_behind_each_other(
    reported: Reported,
) -> None:
    view = study_view(reported("journal-tax", {"6.1": numbers, "6.12": numbers}))
    verdicts = view.sections[0].grid
    assert verdicts is not None
    assert verdicts.header == ("claim", "@6.1", "@6.12")
    assert len(verdicts.rows) == 13
    titles = [section.title for section in view.sections]
    assert sum(title.endswith("@6.1") for title in titles) == 3
    assert (
        "Journaling nearly doubles metadata-only writes (make clean): REPRODUCED @6.1, REPRODUCED"
        " @6.12" in titles
    )
    claim = view.sections[
        titles.index(
            "Journaling nearly doubles metadata-only writes (make clean): REPRODUCED @6.1,"
            " REPRODUCED @6.12"
        )
    ].grid
    assert claim is not None
    assert [row[0] for row in claim.rows[:2]] == ["strictatime @6.1", "strictatime @6.12"]
    assert "Finished repetitions: 3." in "\n".join(
        line for section in view.sections for line in section.lines
    )


def test_virtual_times_are_called_so_in_the_title_where_all_are(reported: Reported) -> None:
    def one(short: str, phase: str, metric: str, repetition: int) -> float:
        return 1.0

    titles = [
        section.title
        for section in study_view(reported("nine-filesystems", one, time_unit="virtual_s")).sections
    ]
    assert "Time, published above measured (measured: virtual)" in titles
    assert "Device bytes written" in titles
    mixed = study_view(reported("snapshot-atime", one, time_unit="virtual_s")).sections[1]
    assert mixed.title == "Metadata (as the file system counts it, one copy) and what was written"
    assert mixed.grid is not None
    labels = [row[0] for row in mixed.grid.rows]
    assert "wall time, find (virtual)" in labels
    assert "device bytes written, find" in labels


def test_by_disk_adds_a_table_of_the_disks_to_every_form(reported: Reported) -> None:
    report = reported("journal-tax", numbers)
    for text in (
        terminal_text(study_view(report), 100),
        markdown_text(study_view(report)),
        json_text(report),
    ):
        assert "By disk" not in text
        assert '"disks"' not in text
    view = study_view(report, is_by_disk=True)
    for text in (terminal_text(view, 100), markdown_text(view)):
        assert "By disk, all measured phases" in text
    samples = report.results.samples.to_pylist()
    wholes = [
        row["value"]
        for row in samples
        if (row["profile"], row["phase"], row["metric"], row["disk"])
        == (STRICT, "total", WRITTEN, "")
    ]
    found = [
        row
        for row in json.loads(json_text(report, is_by_disk=True))["disks"]
        if row["profile"] == STRICT
    ]
    assert {row["disk"] for row in found} == {"journal"}
    [written] = [
        row["median"] for row in found if (row["phase"], row["metric"]) == ("total", WRITTEN)
    ]
    assert written == pytest.approx(sorted(wholes)[1] / 7)


def test_what_a_larger_run_may_decide_is_said_with_its_command(reported: Reported) -> None:
    def small(short: str, phase: str, metric: str, repetition: int) -> float | None:
        value = numbers(short, phase, metric, repetition)
        return None if value is None else value / 4

    [line] = [
        line
        for line in study_view(reported("journal-tax", small)).sections[0].lines
        if "larger run" in line
    ]
    assert line.startswith("A larger run may decide 21 of the open criteria: ")
    assert line.endswith("fscost study run journal-tax --scale medium")
