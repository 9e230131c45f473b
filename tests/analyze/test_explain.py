"""The table of a recording, its sums, and `fscost explain`."""

import filecmp
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fscost import analyze, capture, profile
from fscost.analyze import By, Explanation
from fscost.analyze.commits import Why
from fscost.analyze.writing import writing
from fscost.errors import InputError
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

from .made import BLOCK, S, commit, explanation, of_table, row

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
CHUNK = 4 * MIB
DATA_BYTES = 7 * 4096


def fscost(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("fscost")
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(
        [program, "explain", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def recorded_bytes(recording: Path) -> dict[str, int]:
    """Return bytes per phase, summed over the requests."""
    found: dict[str, int] = {}
    for interval in capture.intervals(recording):
        totals = interval.disks.values()
        found[interval.name] = found.get(interval.name, 0) + sum(
            t["write_bytes"] + t["zero_bytes"] for t in totals
        )
    return found


def explained_bytes(explanation: Explanation) -> dict[str, int]:
    return {group.name: group.bytes for group in analyze.groups(explanation, By.PHASE)}


def test_every_byte_is_in_one_row_of_its_phase(recording: Path) -> None:
    explanation = analyze.explain(recording)
    assert explained_bytes(explanation) == {
        name: count for name, count in recorded_bytes(recording).items() if count
    }
    assert explanation.families == {"main": "ext"}
    assert explanation.measured == ["work", "again"]
    assert analyze.unknown_bytes(explanation) == 0


def test_a_file_is_found_with_its_path_and_its_inode(recording: Path) -> None:
    work = analyze.explain(recording).within(["work"])
    [file] = [group for group in analyze.groups(work, By.FILE) if group.name == "/d/hello.txt"]
    assert file.parts["data"] == DATA_BYTES
    rows = work.table.filter(pc.equal(work.table["structure"], "file_data"))
    assert set(rows["inode"].to_pylist()) == {13}
    assert set(rows["cause"].to_pylist()) == {"data"}
    assert pc.all(pc.is_null(rows["transaction"])).as_py()
    names = {by: {group.name for group in analyze.groups(work, by)} for by in By}
    assert {"file_data", "directory", "inode_table", "block_bitmap"} <= names[By.STRUCTURE]
    assert "data" in names[By.CAUSE]
    assert "/d" in names[By.DIRECTORY]
    assert ".txt" in names[By.EXTENSION]
    assert names[By.TRANSACTION] == {"(of no transaction)"}


def test_a_recording_is_packed_in_the_pass_that_explains_it(
    recording: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "packed"
    shutil.copy(recording, packed)
    begun = capture.Explaining(packed).pack()
    assert begun.not_packed is None
    assert packed.stat().st_size < recording.stat().st_size / 2
    plain = analyze.explain(recording)
    for explained in (analyze.explain(packed, begun), analyze.explain(packed)):
        assert explained.table.equals(plain.table)
    assert capture.verify(packed)["whole"]
    before, after = (pa.Table.from_batches(capture.requests(f)) for f in (recording, packed))
    assert before.equals(after)
    for name in ("before", "after"):
        found = recording if name == "before" else packed
        capture.export_image(found, "main", tmp_path / name)
    assert filecmp.cmp(tmp_path / "before", tmp_path / "after", shallow=False)


@pytest.mark.parametrize("export", [capture.export_image, capture.export_dm_log_writes])
def test_an_export_asks_the_thread_that_waits_for_it(
    recording: Path, tmp_path: Path, export: Callable[..., object]
) -> None:
    """Another thread would be killed, and Rust would abort the process, when Python ends."""
    folder = tmp_path / "folder"
    folder.mkdir()
    asked: list[int] = []

    def refuse(size: int) -> None:
        asked.append(threading.get_ident())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(recording, "main", folder / "out", announce=refuse)
    assert asked == [threading.get_ident()]
    assert not [*folder.iterdir()]


def test_a_recording_that_cannot_be_packed_is_explained_and_stays(
    recording: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    copy = folder / "copy"
    shutil.copy(recording, copy)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        begun = capture.Explaining(copy).pack()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert begun.not_packed is not None
    assert "File too large" in begun.not_packed
    assert filecmp.cmp(copy, recording, shallow=False)
    assert [path.name for path in folder.iterdir()] == ["copy"]
    assert analyze.explain(copy, begun).table.equals(analyze.explain(recording).table)


@pytest.mark.parametrize("by", list(By))
def test_each_way_to_sum_has_all_bytes(recording: Path, by: By) -> None:
    explanation = analyze.explain(recording)
    groups = analyze.groups(explanation, by)
    assert (
        sum(group.bytes for group in groups)
        == analyze.total_bytes(explanation)
        == sum(recorded_bytes(recording).values())
    )
    assert all(sum(group.parts.values()) == group.bytes for group in groups)


def made_up(*rows: tuple[str, str | None, str, int, int | None]) -> Explanation:
    """Return an explanation of rows of structure, home, cause, length and transaction."""
    structure, home, cause, length, transaction = (
        list(column) for column in zip(*rows, strict=True)
    )
    table = pa.table(
        {
            "structure": pa.array(structure).dictionary_encode(),
            "home_structure": pa.array(home, pa.string()).dictionary_encode(),
            "cause": pa.array(cause).dictionary_encode(),
            "atime_alone": pa.array([each in ("atime", "atime+log") for each in cause]),
            "length": pa.array(length, pa.uint64()),
            "event": pa.array(range(len(rows)), pa.uint64()),
            "time_ns": pa.array(range(len(rows)), pa.uint64()),
            "phase": pa.array(["work"] * len(rows)).dictionary_encode(),
            "offset": pa.array([0] * len(rows), pa.uint64()),
            "home_offset": pa.array([None] * len(rows), pa.int64()),
            "path": pa.array([None] * len(rows), pa.string()).dictionary_encode(),
            "transaction": pa.array(transaction, pa.int64()),
            "copy": pa.array([0] * len(rows), pa.uint8()),
            "doubtful": pa.array([False] * len(rows)),
        }
    )
    return of_table(
        table, {"main": "ext"}, ["work"], {"journal_copy", "journal_commit"}, is_timed=False
    )


def test_transactions_of_equal_size_are_in_the_order_of_their_numbers() -> None:
    explanation = made_up(*(("journal_commit", None, "log", 8, n) for n in (101, 6, 100, 10)))
    found = analyze.groups(explanation, By.TRANSACTION)
    assert [group.name for group in found] == ["6", "10", "100", "101"]


def test_findings_say_what_the_sums_say() -> None:
    explanation = made_up(
        ("file_data", None, "data", 400, None),
        ("inode_table", None, "atime", 200, None),
        ("journal_copy", "inode_table", "atime", 300, 1),
        ("journal_copy", "directory", "directory_entries", 60, 2),
        ("journal_commit", None, "log", 40, 2),
    )
    assert analyze.findings(explanation) == [
        "50 % of the bytes were access times alone: noatime would have avoided them",
        "for each byte of file data, 0.5 bytes of metadata and 1 of journal or log were written",
        "36 % of the bytes were the journal's copies of blocks",
    ]


def test_what_is_not_understood_is_said_first() -> None:
    explanation = made_up(
        ("unknown", None, "unknown", 5, None), ("directory", None, "directory_entries", 995, None)
    )
    [only] = analyze.findings(explanation)
    assert only.startswith("0.5 % of the bytes are unidentified")


def test_nothing_written_has_no_findings() -> None:
    explanation = made_up(("directory", None, "directory_entries", 0, None))
    assert analyze.findings(explanation) == []


def test_an_unknown_phase_is_an_error_that_names_the_others(recording: Path) -> None:
    with pytest.raises(InputError, match="work"):
        analyze.explain(recording).within(["never"])


def test_the_command_prints_a_table(recording: Path) -> None:
    told = fscost(str(recording))
    assert (told.returncode, told.stderr) == (0, "")
    assert "main: ext" in told.stdout
    assert "written in work; 0.0 % unknown" in told.stdout
    assert re.search(r"^file_data +28\.0 KiB +\d+\.\d % +█+ +data$", told.stdout, re.MULTILINE)
    assert "format" not in told.stdout
    assert "format" in fscost(str(recording), "--all").stdout
    assert re.search(r"^\(\d+ more\) ", fscost(str(recording), "--top", "2").stdout, re.MULTILINE)
    whole = json.loads(fscost(str(recording), "--json").stdout)
    largest = json.loads(fscost(str(recording), "--json", "--top", "2").stdout)
    assert whole["rest"] is None
    assert largest["groups"] == whole["groups"][:2]
    assert largest["rest"]["groups"] == len(whole["groups"]) - 2
    assert largest["rest"]["write_bytes"] == whole["write_bytes"] - sum(
        group["write_bytes"] for group in largest["groups"]
    )
    assert sum(largest["rest"]["parts"].values()) == largest["rest"]["write_bytes"]


def test_a_cut_recording_is_explained_as_far_as_it_goes(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-70])
    told = fscost(str(recording), "--all")
    assert told.returncode == 0
    assert "incomplete (truncated at byte" in told.stdout


def test_json_and_parquet_have_the_same_bytes(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "bytes.parquet"
    told = fscost(str(recording), "--json", "--by", "file", "--parquet", str(out), "--all")
    found = json.loads(told.stdout)
    assert (
        found["write_bytes"]
        == sum(group["write_bytes"] for group in found["groups"])
        == pc.sum(pq.read_table(out)["length"]).as_py()
    )
    assert found["unknown_write_bytes"] == found["doubtful_owner_write_bytes"] == 0
    assert (found["families"], found["end"]) == ({"main": "ext"}, "finished")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/etc/passwd"], "not a recording"),
        (["{r}", "--phase", "never"], "its phases are before, mkfs, mount, work, again"),
        (["{r}", "--phase", "work", "--all"], "contradict"),
        (["{r}", "--parquet", "{r}"], "exists"),
        (["{r}", "--parquet", "{t}/no/x"], "there is no folder"),
    ],
)
def test_bad_input_is_one_error(
    arguments: list[str], words: str, recording: Path, tmp_path: Path
) -> None:
    told = fscost(*(a.format(r=recording, t=tmp_path) for a in arguments))
    assert told.returncode == 2
    assert words in told.stderr
    assert "Traceback" not in told.stderr


def blocks_of_the_docs(language: str) -> list[str]:
    return re.findall(
        rf"```{language}\n(.*?)```", (ROOT / "docs/explaining.md").read_text(), re.DOTALL
    )


def answered(queries: list[str]) -> list[list[tuple[Any, ...]]]:
    return [duckdb.sql(query).fetchall() for query in queries]


def test_the_queries_of_the_docs_run(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queries run unchanged, on a real recording and on a hand-made table that has values
    missing from the recording."""
    monkeypatch.chdir(tmp_path)
    whole = analyze.explain(recording)
    with writing(whole, tmp_path / "bytes.parquet") as written:
        written()
    queries = blocks_of_the_docs("sql")
    assert len(queries) >= 5
    top, pieces, chunks, phases, _, _, extensions, _ = answered(queries)
    files = {row[0]: row[1:3] for row in top}
    assert files["/d/hello.txt"][1] == DATA_BYTES
    assert pieces == [("/d/hello.txt", 7, 7, 1)]
    assert [each[0] for each in chunks] == ["main"]
    assert sum(row[4] for row in phases) == analyze.total_bytes(whole)
    assert {row[0]: row[1:3] for row in extensions}[".txt"] == (1, DATA_BYTES)
    (tmp_path / "bytes.parquet").unlink()
    rows = [
        row("file_data", path="/a", inode=12, file_offset=0, length=3 * BLOCK),
        row("file_data", path="/a", inode=12, file_offset=BLOCK - 512, length=1024, copy=0),
        row("file_data", path="/a", inode=12, file_offset=0, copy=1),
        row("file_data", path="/b", inode=13, offset=CHUNK - BLOCK, length=2 * CHUNK),
        row("file_data", path="/b", inode=13, file_offset=0, phase="mkfs"),
        *commit(1, [("inode_table", 5)], S),
        *commit(2, [("inode_table", 5), ("directory", 6)], 3 * S),
    ]
    with writing(explanation(rows), tmp_path / "bytes.parquet") as written:
        written()
    _, pieces, chunks, _, _, journaled, _, seconds = answered(queries)
    assert pieces == [("/a", 5, 3, 1.67)]
    assert chunks == [("main", 3, 1)]
    assert [each[:4] for each in journaled] == [(5 * BLOCK, "inode_table", None, 2)]
    assert [each[1] for each in seconds if each[1]] == [1, 1]
    for query in blocks_of_the_docs("python"):
        scope: dict[str, Any] = {}
        exec(compile(query, "docs/explaining.md", "exec"), scope)
        assert isinstance(scope["answer"], pa.Table)
        assert scope["answer"].num_rows > 0


def test_the_docs_name_every_column(recording: Path) -> None:
    text = (ROOT / "docs/explaining.md").read_text()
    assert [
        name
        for name in analyze.explain(recording).table.column_names
        if f"| `{name}` |" not in text
    ] == []


@pytest.mark.root
@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_a_real_cell_is_explained_to_the_byte(tmp_path: Path, spelled: str) -> None:
    steps = (
        Step(
            "make",
            "mkdir t; for i in $(seq 200); do head -c $((i * 97)) /dev/urandom > t/$i.bin; done;"
            " sync -f .",
        ),
        Step("read", "cat t/* > /dev/null; touch t; sync -f .", drop_caches=True),
        Step("delete", "rm -r t"),
        Step("fsync", "for i in $(seq 20); do echo $i >> log; sync log; done"),
    )
    cell = Cell(profile.resolve(spelled), Workload("mine", steps, disk_bytes=MIB), 0, 7, 0)
    result = NativeLab(find_binaries()).run(
        cell,
        LabOptions(tmp_path / "cell", disk_size_bytes=512 * MIB),
        lambda name: None,
    )
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording is not None
    explanation = analyze.explain(result.recording)
    assert explained_bytes(explanation) == {
        name: count for name, count in recorded_bytes(result.recording).items() if count
    }
    assert analyze.unknown_bytes(explanation) <= 0.001 * analyze.total_bytes(explanation)
    made = explanation.within(["make"])
    [directory] = [group for group in analyze.groups(made, By.DIRECTORY) if group.name == "/t"]
    assert directory.parts["data"] >= sum(i * 97 for i in range(100, 201))
    of_fsync = analyze.report(explanation, ["fsync"], By.STRUCTURE, None)
    journal = of_fsync.journal
    assert journal is not None
    # Every fsync forces a commit. On btrfs, an fsync causes a log sync or a full commit.
    assert journal.reasons.count(Why.FORCED) + journal.log_syncs >= 19
    assert journal.count + journal.log_syncs <= 30
    assert journal.bytes == analyze.kinds(explanation.within(["fsync"]))["journal"] + (
        journal.log_syncs * 4096
    )
    if spelled == "ext4":
        share = round(100 * journal.copy_bytes / of_fsync.write_bytes)
        assert f"{share} % of the bytes were the journal's copies of blocks" in of_fsync.findings
        assert any("for each byte of file data" in line for line in of_fsync.findings)
