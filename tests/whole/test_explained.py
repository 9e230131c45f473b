"""`fscost compare --json` on real file systems: the report covers every byte written, and its
figures mean what they say."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.analyze.made import of_table
from tests.schemas import valid
from tests.variants import some

from fscost import analyze, capture
from fscost.results import load, written
from fscost.run.after import explained

pytestmark = pytest.mark.root
PROGRAM = (sys.executable, "-c", "from fscost.cli import main; main()")
WHOLE = "device_write_bytes"
Values = Mapping[tuple[str, str, str], float]


def compare(folder: Path, *arguments: str) -> tuple[dict[str, Any], Values]:
    """Return a run's JSON, and its medians by profile, phase and metric."""
    command = [
        *PROGRAM,
        "compare",
        "--json",
        "--out",
        str(folder),
        "--min-repetitions",
        "1",
        "--max-repetitions",
        "1",
        *arguments,
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    value = valid(ended.stdout)
    return value, {
        (row["profile"], row["phase"], row["metric"]): row["median"] for row in value["rows"]
    }


def on(*profiles: str) -> list[str]:
    return [argument for profile in profiles for argument in ("--on", profile)]


def test_every_phase_is_partitioned_exactly(tmp_path: Path) -> None:
    """The partition holds by kind in the JSON, and by structure and by cause in the samples, for
    mkfs and mount too."""
    profiles = ("ext4", "ext4 -O ^has_journal", "ext4-external-journal", "xfs", "btrfs")
    value, found = compare(
        tmp_path / "run",
        "--workload",
        "small-files",
        "--scale",
        "0.2",
        "--keep",
        "none",
        *on(*profiles),
    )
    assert value["not_explained"] == []
    phases = {(profile, phase) for profile, phase, metric in found if metric == WHOLE}
    assert {phase for _, phase in phases} == {
        "mkfs",
        "mount",
        "unpack",
        "unpack-over",
        "delete",
        "total",
    }
    assert len(phases) == 6 * len(profiles)
    for key in phases:
        assert sum(found[(*key, kind)] for kind in written.KINDS) == found[(*key, WHOLE)], key
    samples = {
        (row["profile"], row["phase"], row["metric"]): row["value"]
        for row in load(tmp_path / "run").samples.to_pylist()
        if not row["disk"]
    }
    for key in phases:
        for partition in (
            written.KINDS,
            written.BY_STRUCTURE.values(),
            [*written.BY_CAUSE.values(), written.MIXED],
        ):
            assert sum(samples[(*key, metric)] for metric in partition) == samples[(*key, WHOLE)], (
                key
            )
    assert {
        found[profile, "total", written.JOURNAL] > 0
        for profile in ("ext4", "ext4-external-journal", "xfs")
    } == {True}
    assert {found["ext4 -O ^has_journal", phase, written.JOURNAL] for _, phase in phases} == {0}
    assert not list((tmp_path / "run").glob("cells/*/*.fscost"))
    for profile in profiles:
        assert found[profile, "total", written.UNKNOWN] <= 0.001 * found[profile, "total", WHOLE], (
            profile
        )


@pytest.mark.parametrize(
    "made", some(["ext4", "ext4 -O ^has_journal", "xfs", "btrfs"], 1, ["ext4"])
)
def test_access_times_alone_are_what_noatime_saves(tmp_path: Path, made: str) -> None:
    # No commits by time, which depend on how long a phase takes.
    more = ",commit=600" if made in ("ext4", "btrfs") else ""
    strict, off = (f"{made} -o {option}{more}" for option in ("strictatime", "noatime"))
    _, found = compare(
        tmp_path / "run", "--workload", "read-all", "--scale", "0.3", *on(strict, off)
    )
    for phase in ("read", "read-again"):
        saved = found[strict, phase, WHOLE] - found[off, phase, WHOLE]
        assert saved > 128 << 10
        assert found[strict, phase, written.ATIME] == pytest.approx(saved, rel=0.05), phase
        assert found[off, phase, written.ATIME] == 0
    has_journal = made in ("ext4", "xfs")
    assert (found[strict, "total", written.JOURNAL] > 0) == has_journal
    samples = load(tmp_path / "run").samples.to_pylist()
    [part] = [
        row["value"]
        for row in samples
        if (row["profile"], row["phase"], row["metric"]) == (strict, "read", written.JOURNAL_ATIME)
    ]
    assert (part > 0) == has_journal
    assert part < found[strict, "read", written.ATIME]


def test_a_recording_that_is_kept_is_packed_and_explained_alike(tmp_path: Path) -> None:
    _, found = compare(
        tmp_path / "run", "--workload", "small-files", "--scale", "0.1", *on("btrfs")
    )
    [recording] = (tmp_path / "run").glob("cells/*/recording.fscost")
    facts = capture.info(recording)
    assert facts["content_bytes"] > 1.5 * recording.stat().st_size
    sums = explained.sums(analyze.explain(recording))
    assert sums is not None
    for phase in ("mkfs", "unpack", "delete"):
        for metric in (*written.KINDS, written.ATIME, "fs_tree_write_bytes"):
            assert sums[phase][metric] == found.get(("btrfs", phase, metric), 0), (phase, metric)


def test_an_explanation_that_lost_a_block_fails_the_cell_and_its_recording_stays(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab is real, with a classifier that drops the first row of the work."""
    explain = analyze.explain

    def forgetful(recording: Path, begun: capture.Explaining) -> analyze.Explanation:
        whole = explain(recording, begun)
        return without_row(whole, whole.table["phase"].to_pylist().index("work"))

    monkeypatch.setattr(analyze, "explain", forgetful)
    result = bench.run(bench.cell("ext4", "head -c 100000 /dev/urandom > file"))
    explained.add_to(result, result.recording)
    assert (result.status, result.kind) == ("failed", "conservation")
    assert "work: " in result.because
    assert "bytes explained, " in result.because
    assert result.recording is not None


def without_row(whole: analyze.Explanation, lost: int) -> analyze.Explanation:
    kept = [row for row in range(whole.table.num_rows) if row != lost]
    made = of_table(whole.table.take(kept), whole.families, whole.phases, whole.journal_structures)
    return replace(made, punched_bytes=whole.punched_bytes)


def test_relatime_is_judged_by_the_age_of_the_files(tmp_path: Path) -> None:
    """Files already read today cost no access time; older files cost one each. Churn leaves files
    behind."""
    read = ("--prepare", "mkdir d; for n in $(seq 200); do echo $n >d/$n; done", "--age", "2")
    atime: dict[str, float] = {}
    for days in ("0.5", "3"):
        arguments = (*on("ext4"), *read, "--aged", days, "--", "cat d/*")
        value, found = compare(tmp_path / days, *arguments)
        atime[days] = found["ext4", "total", written.ATIME]
        assert 0 < found["ext4", "age", WHOLE] <= 80 << 20
    assert atime["0.5"] == 0
    # 200 inodes of 256 bytes, in place and in the journal.
    assert atime["3"] >= 2 * 200 * 256
    assert any("were 3 days old" in caution for caution in value["cautions"])
