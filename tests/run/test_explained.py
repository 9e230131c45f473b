"""Explained bytes as metrics: they partition the bytes written, or the cell fails."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.analyze.made import of_table

from fscost import analyze, capture
from fscost.capture import RecordedInterval
from fscost.errors import DefectError, InputError
from fscost.lab.base import CellResult, Sample
from fscost.lab.fake import FakeLab
from fscost.matrix import Cell
from fscost.profile.model import Profile
from fscost.results import TOTAL, load, written
from fscost.run import RunOutcome, RunSpec, StoppingRule
from fscost.run.after import explained
from fscost.workload.model import Step, Workload

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
Row = tuple[str, str, str, bool, int]
WHOLE = "device_write_bytes"
JOURNAL_LESS = "ext4 -O ^has_journal"


@dataclass
class Bench:
    """A finished cell, a classifier that returns `rows`, and a recording that holds `recorded`
    bytes for each interval."""

    monkeypatch: pytest.MonkeyPatch

    def add(
        self,
        counted: dict[str, int],
        rows: list[Row],
        recorded: dict[str, int] | None = None,
        families: Any = None,
        *,
        doubtful: bool = False,
    ) -> CellResult:
        names = ("phase", "structure", "cause", "atime_alone", "length")
        columns = (
            dict(zip(names, zip(*rows, strict=True), strict=True))
            if rows
            else {name: [] for name in names}
        )
        columns["doubtful"] = [doubtful] * len(rows)
        columns["disk"] = ["main"] * len(rows)
        table = pa.table({name: pa.array(list(values)) for name, values in columns.items()})
        explanation = of_table(table, families or {"main": "ext"}, list(counted), frozenset())
        self.monkeypatch.setattr(analyze, "explain", lambda *_: explanation)
        disks = {
            phase: {"main": {"write_bytes": count, "zero_bytes": 0}}
            for phase, count in (recorded or {}).items()
        }
        self.monkeypatch.setattr(
            capture,
            "intervals",
            lambda recording: [RecordedInterval(phase, 0, 0, disks[phase]) for phase in disks],
        )
        result = a_result(counted)
        explained.add_to(result, Path("nowhere"))
        return result


def a_result(counted: dict[str, int]) -> CellResult:
    cell = Cell(Profile("ext4", "ext4"), Workload("w", (Step("work", "true"),)), 0, 7, 0)
    return CellResult(
        cell,
        "done",
        samples=[
            Sample(phase, phase != "mkfs", "", WHOLE, "bytes", float(count))
            for phase, count in counted.items()
        ],
    )


def values(result: CellResult, phase: str) -> dict[str, float]:
    return {
        sample.metric: sample.value
        for sample in result.samples
        if sample.phase == phase and sample.metric != WHOLE
    }


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_kinds_structures_and_causes_partition_the_bytes_each(bench: Bench) -> None:
    """Every structure is combined with every cause, alone and with others: each way of counting
    gives the same sum."""
    causes = [
        *written.BY_CAUSE,
        *("+".join(pair) for pair in combinations(written.BY_CAUSE, 2)),
        "atime+directory_entries+log",
        "",
    ]
    rows = [
        ("work", structure, cause, cause in ("atime", "atime+log"), 512 * (number + 1))
        for number, (structure, cause) in enumerate(
            (structure, cause) for structure in written.BY_STRUCTURE for cause in causes
        )
    ]
    total = sum(row[-1] for row in rows)
    result = bench.add({"work": total}, rows)
    assert (result.status, result.because) == ("done", "")
    found = values(result, "work")
    assert set(found) == set(written.MEANINGS)
    for partition in (
        written.KINDS,
        written.BY_STRUCTURE.values(),
        [*written.BY_CAUSE.values(), written.MIXED],
    ):
        assert sum(found[metric] for metric in partition) == total
    assert len(set(written.BY_STRUCTURE.values())) == len(written.BY_STRUCTURE)
    assert len({*written.BY_CAUSE.values(), written.MIXED}) == len(written.BY_CAUSE) + 1


def test_the_names_are_the_classifiers_and_two_that_collide_have_two_names() -> None:
    structures, causes = (
        [name for name, *_ in capture.structures()],
        [name for name, _ in capture.causes()],
    )
    assert set(written.BY_STRUCTURE) == set(structures)
    assert set(written.BY_CAUSE) == set(causes)
    assert not set(written.BY_STRUCTURE.values()) & set(written.BY_CAUSE.values())
    assert {name for name in causes if written.BY_CAUSE[name] != f"{name}_write_bytes"} == {
        "log",
        "unknown",
    }
    assert written.BY_CAUSE["log"] == "log_cause_write_bytes"
    assert {name for name in structures if written.KIND_OF[name] == written.JOURNAL} == {
        name for name, _, journal in capture.structures() if journal
    }
    assert [name for name in structures if written.KIND_OF[name] == written.UNKNOWN] == ["unknown"]
    assert [name for name in structures if written.KIND_OF[name] == written.FILE_DATA] == [
        "file_data"
    ]


@pytest.mark.parametrize(
    ("structure", "cause", "atime_alone", "metric", "in_journal"),
    [
        ("journal_copy", "atime+log", True, "atime_write_bytes", True),
        ("inode_table", "atime", True, "atime_write_bytes", False),
        ("inode_table", "atime+directory_entries", False, "mixed_write_bytes", False),
        ("journal_commit", "log", False, "log_cause_write_bytes", False),
        ("journal_commit", "directory_entries+log", False, "directory_entries_write_bytes", False),
        ("journal_copy", "directory_entries+allocation+log", False, "mixed_write_bytes", False),
        ("unknown", "unknown", False, "unknown_cause_write_bytes", False),
    ],
)
def test_a_journals_blocks_count_with_what_they_carry(
    bench: Bench, structure: str, cause: str, atime_alone: bool, metric: str, in_journal: bool
) -> None:
    found = values(
        bench.add({"work": 4096}, [("work", structure, cause, atime_alone, 4096)]), "work"
    )
    reasons = {name for name in (*written.BY_CAUSE.values(), written.MIXED) if found[name]}
    assert reasons == {metric}
    assert found[written.JOURNAL_ATIME] == (4096 if in_journal else 0)


@pytest.mark.parametrize("doubtful", [False, True])
def test_bytes_of_a_doubtful_owner_count_beside_what_they_are(bench: Bench, doubtful: bool) -> None:
    rows = [
        ("work", "file_data", "data", False, 4096),
        ("work", "journal_copy", "data", False, 512),
    ]
    result = bench.add({"work": 4608}, rows, doubtful=doubtful)
    assert result.status == "done"
    found = values(result, "work")
    assert (found[written.FILE_DATA], found[written.JOURNAL]) == (4096, 512)
    assert found["doubtful_owner_write_bytes"] == (4608 if doubtful else 0)


def test_a_phase_that_wrote_nothing_is_explained_with_zeroes(bench: Bench) -> None:
    result = bench.add({"work": 0}, [])
    assert set(values(result, "work")) == set(written.MEANINGS)
    assert set(values(result, "work").values()) == {0}


def test_what_comes_before_the_first_mark_is_the_first_intervals(bench: Bench) -> None:
    result = bench.add(
        {"mkfs": 1024, "work": 0},
        [("before", "unused", "format", False, 512), ("mkfs", "superblock", "format", False, 512)],
    )
    assert result.status == "done"
    assert values(result, "mkfs")[written.METADATA] == 1024


@pytest.mark.parametrize(
    ("explained_bytes", "recorded"), [(4095, 4095 + 1), (4097, 4096), (0, 4096)]
)
def test_a_byte_too_many_or_too_few_fails_the_cell_with_both_numbers(
    bench: Bench, explained_bytes: int, recorded: int
) -> None:
    result = bench.add(
        {"mkfs": 0, "work": 4096},
        [("work", "file_data", "data", False, explained_bytes)],
        {"mkfs": 0, "work": recorded},
    )
    assert (result.status, result.kind) == ("failed", "conservation")
    assert (
        f"work: {explained_bytes} bytes explained, 4096 written by the kernel's counter"
        in result.because
    )


def test_bytes_of_a_phase_that_was_not_counted_fail_the_cell(bench: Bench) -> None:
    result = bench.add({"work": 0}, [("end", "file_data", "data", False, 512)])
    assert result.kind == "conservation"
    assert "end: 512 bytes explained in a phase that was not counted" in result.because


def test_zeroes_that_arrived_as_holes_are_unknown_where_all_else_is_explained(bench: Bench) -> None:
    """The kernel counts 4096 bytes more than the recording holds as written: write-zeroes, which a
    loop device turns into holes."""
    rows = [("mkfs", "superblock", "format", False, 1024)]
    result = bench.add({"mkfs": 5120, "work": 0}, rows, {"before": 0, "mkfs": 1024, "work": 0})
    assert result.status == "done"
    found = values(result, "mkfs")
    assert (
        found[written.METADATA],
        found[written.UNKNOWN],
        found["unknown_cause_write_bytes"],
    ) == (1024, 4096, 4096)
    other = bench.add({"mkfs": 5120, "work": 0}, rows, {"before": 0, "mkfs": 2048, "work": 0})
    assert other.kind == "conservation"
    assert "mkfs: 1024 bytes explained, 5120 written" in other.because


def test_a_disk_with_no_file_system_that_is_known_is_not_explained(bench: Bench) -> None:
    result = bench.add(
        {"work": 512},
        [("work", "unknown", "unknown", False, 512)],
        families={"main": None, "other": None},
    )
    assert (result.status, values(result, "work")) == ("done", {})
    assert "no supported file system" in result.facts["not_explained"]


def test_a_classifier_that_gives_up_costs_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> analyze.Explanation:
        raise InputError("a tree of btrfs that is none")

    monkeypatch.setattr(analyze, "explain", broken)
    result = a_result({"work": 512})
    explained.add_to(result, Path("nowhere"))
    assert (result.status, values(result, "work")) == ("done", {})
    assert result.facts["not_explained"] == "a tree of btrfs that is none"


def test_what_a_panic_of_the_native_module_becomes(tmp_path: Path) -> None:
    """The real exception class is pyo3's, which is not an `Exception`."""
    native = pytest.importorskip("fscost._native")
    recording = tmp_path / "a b.fscost"
    with pytest.raises(DefectError) as caught, capture.errors(recording):
        raise native.PanicException("attempt to subtract with overflow")
    assert not issubclass(native.PanicException, Exception)
    assert caught.value.what == f"{recording}: a bug in fscost (attempt to subtract with overflow)"
    assert f"fscost recording strip '{recording}' to-send.fscost" in str(caught.value)


def test_a_corrupted_explanation_fails_its_cells_and_no_other(spec: Make, go: Go) -> None:
    results = go(spec(), FakeLab(miscount={JOURNAL_LESS: -512})).results
    assert {(cell.profile, cell.kind) for cell in results.manifest.failed} == {
        (JOURNAL_LESS, "conservation")
    }
    assert {cell.profile for cell in results.manifest.done} == {"ext4", "xfs"}
    first = results.manifest.failed[0].because.partition(";")[0]
    said, counted = (int(word) for word in first.split() if word.isdecimal())
    assert counted - said == 512
    assert JOURNAL_LESS not in results.samples["profile"].to_pylist()


def test_what_is_absent_is_not_zero(spec: Make, go: Go) -> None:
    """A cell that was not explained has none of these metrics; the other cells have all of them and
    a total."""
    results = go(
        spec(stopping=StoppingRule(2, 2)), FakeLab(unexplained={"xfs": "it is none of ours"})
    ).results
    found: dict[str, Counter[str]] = {}
    for row in load(results.folder).samples.to_pylist():
        if row["metric"] in written.MEANINGS and row["phase"] == TOTAL:
            found.setdefault(row["profile"], Counter())[row["metric"]] += 1
    assert set(found) == {"ext4", JOURNAL_LESS}
    assert found["ext4"][written.JOURNAL] == found[JOURNAL_LESS][written.JOURNAL] == 2
    facts = {cell.profile: cell.facts.get("not_explained") for cell in results.manifest.done}
    assert facts == {"ext4": None, JOURNAL_LESS: None, "xfs": "it is none of ours"}


def test_the_metric_that_decides_may_be_a_part_of_what_was_written(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 9, metric=written.METADATA, precision=0.5)))
    assert "metadata_write_bytes is known to" in outcome.results.manifest.stopped_because
