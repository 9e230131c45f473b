"""Interrupted and resumed runs have the same cells as uninterrupted ones."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import HostError, InputError
from fscost.lab.fake import FakeLab
from fscost.profile import plan_format
from fscost.profile.model import FormatPlan, Profile
from fscost.results import load
from fscost.run import RunOutcome, RunSpec, StoppingRule

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]


def interrupted(spec: RunSpec, go: Go, at: int) -> RunOutcome:
    return go(spec, FakeLab(stop_at={at: KeyboardInterrupt()}))


@pytest.mark.parametrize("at", [1, 2, 3, 5, 8])
def test_an_interrupted_run_goes_on_exactly(spec: Make, go: Go, tmp_path: Path, at: int) -> None:
    whole = go(spec(folder=tmp_path / "whole"))
    first = interrupted(spec(), go, at)
    assert first.interrupted
    assert first.exit_code == 130
    assert first.results.manifest.state == "interrupted"
    assert len(first.results.manifest.cells) == at
    lab = FakeLab()
    rest = go(spec(resume=True), lab)
    assert len(lab.ran) == 9 - at
    assert [cell.cell for cell in rest.results.manifest.cells] == [
        cell.cell for cell in whole.results.manifest.cells
    ]
    assert rest.results.samples.equals(whole.results.samples)
    assert load(spec().folder).samples.equals(whole.results.samples)


def test_an_interruption_before_the_first_cell_leaves_nothing(spec: Make, go: Go) -> None:
    outcome = interrupted(spec(), go, 0)
    assert outcome.interrupted
    assert not spec().folder.exists()


def test_what_an_unfinished_cell_left_is_removed(spec: Make, go: Go) -> None:
    interrupted(spec(), go, 4)
    finished = {cell.cell for cell in load(spec().folder).manifest.cells}
    left = (
        spec().folder / "cells" / next(cell for cell in ("ext4.1", "xfs.1") if cell not in finished)
    )
    left.mkdir()
    (left / "half").write_bytes(b"half")
    (spec().folder / ".samples.parquet.part").write_bytes(b"half")
    go(spec(resume=True))
    assert not (left / "half").exists()
    assert not list(spec().folder.glob(".*"))


def test_a_killed_run_goes_on_too(spec: Make, go: Go, tmp_path: Path) -> None:
    """SIGKILL leaves state `running`, and possibly samples that the manifest does not list."""
    whole = go(spec(folder=tmp_path / "whole"))
    interrupted(spec(), go, 4)
    path = spec().folder / "manifest.json"
    value = json.loads(path.read_text())
    value["state"] = "running"
    value["cells"].pop()
    path.write_text(json.dumps(value))
    assert go(spec(resume=True)).results.samples.equals(whole.results.samples)


def test_the_stopping_rule_may_change(spec: Make, go: Go) -> None:
    go(spec())
    outcome = go(spec(resume=True, stopping=StoppingRule(5, 5)))
    assert len(outcome.results.manifest.cells) == 15
    assert outcome.results.manifest.stopping["max_repetitions"] == 5


def test_a_repetition_that_was_begun_is_completed(spec: Make, go: Go) -> None:
    """A half-finished repetition would be lost to the ratios."""
    interrupted(spec(), go, 4)
    outcome = go(spec(resume=True, stopping=StoppingRule(1, 1)))
    assert len(outcome.results.manifest.cells) == 6


def test_a_finished_run_has_nothing_to_go_on_with(spec: Make, go: Go) -> None:
    go(spec())
    lab = FakeLab()
    assert go(spec(resume=True), lab).exit_code == 0
    assert lab.ran == []


def only_ext4(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
    if profile.type != "ext4":
        raise InputError("a disk of 64 MiB is too small", "give it a larger one")
    return plan_format(profile, disk_size_bytes, seed)


def test_skipped_and_given_up_profiles_stay_out(
    spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it matter whether such a profile can be planned, or which tools it needs."""
    lab = FakeLab(
        skip={"xfs": "missing"},
        fail={"ext4": ("mkfs", "refused")},
        stop_at={order: KeyboardInterrupt() for order in (3, 4, 5)},
    )
    go(spec(), lab)
    earlier = load(spec().folder)
    monkeypatch.setattr("fscost.run.folder.plan_format", only_ext4)
    lab = FakeLab()
    outcome = go(spec(resume=True), lab)
    assert len(earlier.manifest.skipped) == 1
    assert {cell.rpartition("-")[0] for cell in lab.ran} == {"ext4-O-has-journal"}
    assert [entry.profile for entry in outcome.results.manifest.skipped] == ["xfs"]
    assert len(outcome.results.manifest.failed) == 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"seed": 8}, "seed was 7 and is 8 now"),
        ({"baseline": "xfs"}, "baseline was 'ext4' and is 'xfs' now"),
        ({"profiles": (Profile("ext4", "ext4"),)}, "its profiles was"),
        (
            {"disk_size_bytes": 8 << 30},
            "options.disk_size_bytes was 4294967296 and is 8589934592 now",
        ),
        ({"keep": "all"}, "options.keep"),
    ],
)
def test_another_run_is_refused(spec: Make, go: Go, other: dict[str, Any], words: str) -> None:
    interrupted(spec(), go, 4)
    before = (spec().folder / "manifest.json").read_bytes()
    with pytest.raises(InputError) as caught:
        go(spec(resume=True, **other))
    assert words in caught.value.what
    assert (spec().folder / "manifest.json").read_bytes() == before


def test_another_workload_is_refused(spec: Make, go: Go) -> None:
    interrupted(spec(), go, 4)
    with pytest.raises(InputError, match=r"its workload\.scale was 1\.0 and is 2\.0 now"):
        go(spec(resume=True, workload=replace(spec().workload, scale=2.0)))


def test_another_lab_or_kernel_is_refused(spec: Make, go: Go) -> None:
    interrupted(spec(), go, 4)
    with pytest.raises(InputError, match="its lab was 'fake' and is 'other' now"):
        go(spec(resume=True), FakeLab(name="other"))
    with pytest.raises(InputError, match=r"its kernel.release was '6.1.0-fake' and is '6.2' now"):
        go(spec(resume=True), FakeLab(kernel="6.2"))


def test_other_versions_are_refused_if_the_bytes_depend_on_them(
    spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass
    class Versioned(FakeLab):
        tools: Mapping[str, str] = field(default_factory=dict)
        guest: Mapping[str, Any] = field(default_factory=dict)

        def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
            guest = {"guest": self.guest} if self.guest else {}
            return super().environment(profiles) | {"tools": self.tools} | guest

    old, new = {"mkfs.ext4": "1.46", "git": "2.39"}, {"mkfs.ext4": "1.46", "git": "2.40"}
    go(spec(), Versioned(stop_at={2: KeyboardInterrupt()}, tools=old))
    with pytest.raises(InputError, match=r"its mkfs.ext4 was '1.46' and is '1.47' now"):
        go(spec(resume=True), Versioned(tools={"mkfs.ext4": "1.47"}))
    go(spec(resume=True), Versioned(stop_at={4: KeyboardInterrupt()}, tools=new))
    with monkeypatch.context() as changed:
        changed.setattr("fscost.host.fscost_version", lambda: "9")
        with pytest.raises(InputError, match=r"its fscost_version was .* and is '9' now"):
            go(spec(resume=True), Versioned(tools=new))
    # Guests do not run the host's kernel.
    spec_of_guests = {"folder": spec().folder.with_name("guests")}
    guest = {"builds": {"6.12": "6.12.1"}}
    lab = Versioned(stop_at={2: KeyboardInterrupt()}, guest=guest)
    go(spec(**spec_of_guests), lab)
    with pytest.raises(InputError, match=r"its guest.builds was"):
        go(spec(resume=True, **spec_of_guests), Versioned(guest={"builds": {"6.12": "6.12.2"}}))
    assert (
        go(spec(resume=True, **spec_of_guests), Versioned(kernel="6.2", guest=guest)).exit_code == 0
    )


def test_a_cell_for_which_the_host_had_no_space_runs_again(spec: Make, go: Go) -> None:
    with pytest.raises(HostError):
        go(spec(), FakeLab(fail={"xfs.1": ("host-disk-full", "the host's disk is full")}))
    lab = FakeLab()
    rest = go(spec(resume=True), lab)
    assert "xfs.1" in lab.ran
    assert len(rest.results.manifest.done) == 9


def test_a_folder_that_holds_no_run_is_refused(spec: Make, go: Go) -> None:
    with pytest.raises(InputError, match="holds no run"):
        go(spec(resume=True))
    assert not spec().folder.exists()
