"""The run loop: order, repetitions, skipped cells, failures, and kept files."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import DiskFullError, HostError, InputError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.fake import FakeLab
from fscost.matrix import Cell
from fscost.results import JOURNAL, RunFullError, limits, load
from fscost.run import RunOutcome, RunSpec, StoppingRule, commands
from fscost.workload import resolve

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
JOURNAL_LESS = "ext4 -O ^has_journal"


def test_every_repetition_runs_every_profile_once_in_an_order_of_its_own(
    spec: Make, go: Go
) -> None:
    outcome = go(spec(stopping=StoppingRule(6, 6)))
    cells = outcome.results.manifest.cells
    assert [cell.order for cell in cells] == list(range(18))
    rounds = [[cell.profile for cell in cells[i : i + 3]] for i in range(0, 18, 3)]
    assert all(sorted(found) == sorted(rounds[0]) for found in rounds)
    assert len({tuple(found) for found in rounds}) > 1
    assert all(len({cell.seed for cell in cells if cell.repetition == r}) == 1 for r in range(6))
    assert len({cell.seed for cell in cells}) == 6


def test_the_same_seed_gives_the_same_numbers(spec: Make, go: Go, tmp_path: Path) -> None:
    first, second = (go(spec(folder=tmp_path / name)) for name in ("a", "b"))
    assert first.results.samples.equals(second.results.samples)
    other = go(spec(folder=tmp_path / "c", seed=8))
    assert not first.results.samples.equals(other.results.samples)


def test_what_is_returned_is_what_is_on_disk(spec: Make, go: Go) -> None:
    outcome = go(spec())
    found = load(outcome.results.folder)
    assert found.samples.equals(outcome.results.samples)
    assert found.manifest == outcome.results.manifest
    assert outcome.exit_code == 0
    assert found.manifest.state == "finished"


def test_the_manifest_says_what_was_asked_and_what_was_found(spec: Make, go: Go) -> None:
    manifest = go(
        spec(request={"asked": "this"}, command_line=("fscost", "compare"))
    ).results.manifest
    assert [profile["name"] for profile in manifest.profiles] == ["ext4", JOURNAL_LESS, "xfs"]
    assert [step["name"] for step in manifest.workload["steps"]] == ["copy", "write", "delete"]
    assert manifest.request == {"asked": "this"}
    assert manifest.environment["kernel"] == {"release": "6.1.0-fake"}
    assert manifest.cells[0].facts["mounted"]["type"] in ("ext4", "xfs")
    assert manifest.options["disk_size_bytes"] == 4 << 30
    assert manifest.baseline == "ext4"


def test_narrow_at_once_stops_at_the_minimum(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 10)), FakeLab(noise=0.001))
    assert len(outcome.results.manifest.cells) == 9
    assert "within the target of ± 2.0 %" in outcome.results.manifest.stopped_because


def test_wide_goes_on_to_the_maximum(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 5)), FakeLab(noise=0.2))
    assert len(outcome.results.manifest.cells) == 15
    assert "maximum of 5 repetitions reached" in outcome.results.manifest.stopped_because
    assert "not to the target of" in outcome.results.manifest.stopped_because


def test_the_time_cap_never_cuts_a_repetition(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 10, max_minutes=1e-6)))
    assert len(outcome.results.manifest.cells) == 3
    assert "would exceed 1e-06 minutes" in outcome.results.manifest.stopped_because


def test_repetitions_that_an_interval_takes_are_not_cut_by_time(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 10, max_minutes=1e-6, whole_repetitions=2)))
    assert {cell.repetition for cell in outcome.results.manifest.done} == {0, 1}


def test_another_metric_may_decide(spec: Make, go: Go) -> None:
    outcome = go(spec(stopping=StoppingRule(3, 4, metric="wall_s")), FakeLab(noise=0.02))
    assert len(outcome.results.manifest.cells) == 12


def test_what_cannot_run_is_skipped_once_and_loudly(spec: Make, go: Go, heard: Any) -> None:
    outcome = go(spec(), FakeLab(skip={"xfs": "mkfs.xfs is missing"}))
    assert heard.count("skips xfs: mkfs.xfs is missing") == 1
    assert [(entry.profile, entry.because) for entry in outcome.results.manifest.skipped] == [
        ("xfs", "mkfs.xfs is missing")
    ]
    assert {cell.profile for cell in outcome.results.manifest.cells} == {"ext4", JOURNAL_LESS}
    assert outcome.exit_code == 0


def test_a_workload_for_other_file_systems_is_skipped(spec: Make, go: Go) -> None:
    outcome = go(spec(workload=replace(spec().workload, only_types=("xfs",))))
    assert [entry.because for entry in outcome.results.manifest.skipped] == [
        "workload two-steps runs only on xfs"
    ] * 2


def test_nothing_that_can_run_is_an_error_and_leaves_nothing(spec: Make, go: Go) -> None:
    with pytest.raises(HostError, match="no profile can run here: no root"):
        go(spec(), FakeLab(skip={profile.name: "no root" for profile in spec().profiles}))
    assert not spec().folder.exists()


def test_a_refusal_of_mkfs_is_not_tried_again_and_the_others_go_on(
    spec: Make, go: Go, heard: Any
) -> None:
    outcome = go(spec(), FakeLab(fail={"xfs": ("mkfs", "unknown option -Q")}))
    assert [cell.because for cell in outcome.results.manifest.failed] == ["unknown option -Q"]
    assert heard.count("gives up xfs: mkfs fails the same way each time") == 1
    assert len(outcome.results.manifest.done) == 6
    assert outcome.exit_code == 1


def test_a_failed_workload_is_tried_once_more_and_its_output_is_kept(
    spec: Make, go: Go, heard: Any
) -> None:
    outcome = go(spec(), FakeLab(fail={"xfs": ("workload", "status 1")}))
    assert [cell.repetition for cell in outcome.results.manifest.failed] == [0, 1]
    assert heard.count("gives up xfs: 2 cells failed") == 1
    for cell in outcome.results.manifest.failed:
        assert (outcome.results.folder / cell.output).is_file()


def test_a_single_failure_does_not_stop_a_profile(spec: Make, go: Go, heard: Any) -> None:
    outcome = go(spec(), FakeLab(fail={"xfs.1": ("timeout", "too slow")}))
    assert [cell.cell for cell in outcome.results.manifest.failed] == ["xfs.1"]
    assert [cell.repetition for cell in outcome.results.manifest.done if cell.profile == "xfs"] == [
        0,
        2,
    ]
    assert heard.count("gives up") == 0
    assert "xfs.1" not in outcome.results.samples.column("cell").to_pylist()


def test_when_every_profile_fails_the_first_repetition_is_the_last(spec: Make, go: Go) -> None:
    outcome = go(
        spec(),
        FakeLab(
            fail={profile.name: ("workload", "no such command") for profile in spec().profiles}
        ),
    )
    assert len(outcome.results.manifest.failed) == 3
    assert outcome.exit_code == 2
    assert outcome.results.samples.num_rows == 0
    assert (
        load(outcome.results.folder).manifest.stopped_because
        == "every profile failed in its first repetition"
    )


def test_a_host_that_fails_in_the_middle_keeps_what_is_done(spec: Make, go: Go) -> None:
    with pytest.raises(HostError, match="continue with --resume") as caught:
        go(spec(), FakeLab(stop_at={4: HostError("no loop device is free", "detach one")}))
    assert caught.value.what == "no loop device is free"
    found = load(spec().folder)
    assert (len(found.manifest.done), found.manifest.state) == (4, "stopped")
    assert sorted(path.name for path in (spec().folder / "cells").iterdir()) == sorted(
        cell.cell for cell in found.manifest.done
    )


@pytest.mark.parametrize("name", ["journal.jsonl", "recording.fsc"])
def test_a_disk_that_is_full_only_when_a_cell_is_kept_ends_the_run(
    spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fsync, failed = os.fsync, list[str]()

    def full(descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        # Only once: there is room for the manifest.
        if not failed and path.endswith(f"/{name}") and (spec().folder / JOURNAL).exists():
            failed.append(path)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match=f"{name} cannot be written: No space") as caught:
        go(spec(keep="all", stopping=StoppingRule(8, 8)))
    assert "continue with --resume" in str(caught.value.remedy)
    found = load(spec().folder)
    assert found.manifest.state == "stopped"
    assert sorted(path.name for path in (spec().folder / "cells").iterdir()) == sorted(
        cell.cell for cell in found.manifest.done
    )


def test_a_run_that_grows_too_large_keeps_what_is_done(
    spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(spec(folder=spec().folder.with_name("whole")))
    samples = load(spec().folder.with_name("whole")).samples.num_rows
    monkeypatch.setattr(limits, "MOST_SAMPLES", samples // 2)
    with pytest.raises(RunFullError, match=r"several runs; .*fscost show"):
        go(spec())
    found = load(spec().folder)
    assert (len(found.manifest.done), found.manifest.state) == (4, "stopped")
    assert sorted(path.name for path in (spec().folder / "cells").iterdir()) == sorted(
        cell.cell for cell in found.manifest.done
    )


def test_a_host_that_fails_at_once_leaves_nothing(spec: Make, go: Go) -> None:
    with pytest.raises(HostError, match="no loop device is free"):
        go(spec(), FakeLab(stop_at={0: HostError("no loop device is free")}))
    assert not spec().folder.exists()
    spec().folder.mkdir()
    with pytest.raises(HostError, match="no loop device is free"):
        go(spec(), FakeLab(stop_at={0: HostError("no loop device is free")}))
    assert list(spec().folder.iterdir()) == []


def test_a_full_host_disk_ends_the_run(spec: Make, go: Go) -> None:
    with pytest.raises(HostError, match="the host's disk is full"):
        go(spec(), FakeLab(fail={"xfs.1": ("host-disk-full", "the host's disk is full")}))
    assert load(spec().folder).manifest.cells[-1].kind == "host-disk-full"


def test_a_profile_that_is_skipped_leaves_the_cells_beside_it_alone(
    spec: Make, go: Go, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_skipped = threading.Event()

    class Late(FakeLab):
        def run(
            self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]
        ) -> CellResult:
            if cell.profile.name == "xfs":
                return CellResult(cell, "skipped", "too small for xfs")
            assert is_skipped.wait(60)
            return super().run(cell, options, on_step)

    monkeypatch.setattr(heard, "skips", lambda *_: is_skipped.set())
    outcome = go(spec(), Late(side_by_side=3))
    assert len(outcome.results.manifest.done) == 6


def test_a_profile_that_the_lab_skips_late_is_out(spec: Make, go: Go, heard: Any) -> None:
    class Late(FakeLab):
        def run(
            self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]
        ) -> CellResult:
            if cell.profile.name == "xfs":
                return CellResult(cell, "skipped", "too small for xfs")
            return super().run(cell, options, on_step)

    outcome = go(spec(), Late())
    assert heard.count("skips xfs: too small for xfs") == 1
    assert len(outcome.results.manifest.done) == 6


@pytest.mark.parametrize(("keep", "expected"), [("all", 9), ("one", 3), ("none", 0)])
def test_recordings_are_kept_as_asked(spec: Make, go: Go, keep: str, expected: int) -> None:
    outcome = go(spec(keep=keep))
    kept = [cell for cell in outcome.results.manifest.cells if cell.recording]
    assert len(kept) == expected
    assert len(list(outcome.results.folder.glob("cells/*/recording.fsc"))) == expected
    if keep == "one":
        assert {cell.repetition for cell in kept} == {0}


def test_when_the_first_repetition_failed_the_next_keeps_its_recording(spec: Make, go: Go) -> None:
    outcome = go(spec(), FakeLab(fail={"xfs.0": ("timeout", "too slow")}))
    assert [
        cell.repetition
        for cell in outcome.results.manifest.done
        if cell.profile == "xfs" and cell.recording
    ] == [1]


def test_the_prepared_input_goes_with_the_run_and_comes_back_on_resume(spec: Make, go: Go) -> None:
    found = []

    class Looking(FakeLab):
        def run(
            self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]
        ) -> CellResult:
            assert cell.workload.input is not None
            found.append(sorted(path.name for path in cell.workload.input.iterdir()))
            return super().run(cell, options, on_step)

    workload = resolve("small-files", options={"files": 20})
    folder = go(spec(workload=workload), Looking()).results.folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "cells",
        "manifest.json",
        "samples.parquet",
    ]
    go(spec(workload=workload, resume=True, stopping=StoppingRule(4, 4)), Looking())
    assert found == [["tree.tar"]] * 12


def test_a_used_folder_is_refused(spec: Make, go: Go) -> None:
    go(spec())
    with pytest.raises(InputError, match="is not empty"):
        go(spec())


def test_a_dry_run_names_commands_and_runs_none(spec: Make) -> None:
    lab = FakeLab()
    found = commands(spec(), lab)
    assert list(found) == ["ext4", JOURNAL_LESS, "xfs"]
    assert found[JOURNAL_LESS][0] == "mkfs.ext4 -O ^has_journal {disk.main}"
    assert lab.ran == []
    assert not spec().folder.exists()
