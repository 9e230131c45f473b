"""Each reason to skip says what is missing and what would enable the cell."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import InputError
from fscost.host import conditions, tools
from fscost.lab.cell.requirements import why_not
from fscost.lab.native.lab import _why_no_type
from fscost.profile.model import Array, FormatPlan, Profile


def reason(stage: Any, disk_size_bytes: int | None = None, **changes: Any) -> str | None:
    formatted = dataclasses.replace(
        stage.lab._plan_format(stage.cell.profile, 1 << 30, 0), **changes
    )
    return why_not(stage.cell, disk_size_bytes, lambda *_: formatted, _why_no_type)


def test_nothing_missing(stage: Any) -> None:
    assert reason(stage) is None


def test_a_missing_tool_names_its_package(stage: Any) -> None:
    found = reason(stage, needs_tools=("sh", "mkfs.udf"))
    assert found == "mkfs.udf is missing, which ext4 needs; `apt install udftools`"


def test_a_missing_workload_tool(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.cell = dataclasses.replace(
        stage.cell,
        workload=dataclasses.replace(stage.cell.workload, needs_tools=("fio", "sqlite3")),
    )
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools, "search_path", lambda: "/nowhere")
    found = reason(stage, needs_tools=())
    assert found == "fio, sqlite3 are missing, which mine needs; `apt install fio sqlite3`"


def test_a_file_system_that_the_kernel_lacks(stage: Any) -> None:
    found = reason(stage, mount_type="reiserfs9")
    assert found is not None
    assert "no reiserfs9" in found


def test_an_array_would_be_residue(stage: Any) -> None:
    profile = dataclasses.replace(stage.cell.profile, array=Array("1", 2))
    found = stage.lab.why_not(dataclasses.replace(stage.cell, profile=profile))
    assert found is not None
    assert "outlive" in found
    assert "`--lab vm`" in found
    assert stage.lab.why_no_type(profile) is not None, (
        "so that a run without --lab goes to the VM lab"
    )
    assert stage.lab.why_no_type(stage.cell.profile) is None


def test_a_workload_for_another_file_system(stage: Any) -> None:
    stage.cell = dataclasses.replace(
        stage.cell, workload=dataclasses.replace(stage.cell.workload, only_types=("btrfs",))
    )
    assert reason(stage) == "workload mine runs on btrfs only, not on ext4"


def test_a_disk_too_small(stage: Any) -> None:
    found = reason(stage, disk_size_bytes=1000)
    assert found is not None
    assert "too small" in found
    assert "--size 1M" in found


def test_what_the_profile_says_of_its_disk(stage: Any) -> None:
    def refuse(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
        raise InputError("btrfs needs 114 MiB", "give --disk-size 114M")

    assert (
        why_not(stage.cell, None, refuse, _why_no_type)
        == "btrfs needs 114 MiB give --disk-size 114M"
    )


def test_every_check_that_fails_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(conditions, "BASE_CANDIDATES", (tmp_path / "none",))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("os.open", _refuse)
    found = conditions.checks([("fscost-agent", None)], tools=["mkfs.udf"])
    assert {check.name for check in found if not check.ok} >= {
        "root",
        "/dev/fuse",
        "/dev/loop-control",
        "fscost-agent",
        "mkfs.udf",
    }
    assert all(check.detail for check in found)
    assert all(bool(check.remedy) is not check.ok for check in found)


def _refuse(*_: object) -> int:
    raise PermissionError(13, "Permission denied")


def test_the_base_must_be_empty(tmp_path: Any) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    (tmp_path / "empty").mkdir()
    candidates = [tmp_path / "none", tmp_path / "full", tmp_path / "empty"]
    assert conditions.base_directory(candidates) == tmp_path / "empty"
    with pytest.raises(conditions.HostError, match="full"):
        conditions.base_directory(candidates[:2])


def test_root_inside_a_user_namespace_is_not_taken_for_root() -> None:
    """As in rootless podman: it has every capability, and may not mount an ext4."""
    look = "from fscost.host import required_checks; print(required_checks()[0])"
    answer = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-c", look],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ok=False" in answer.stdout
    assert "root inside a user namespace" in answer.stdout


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ('{"front_end": "ublk", "because": null}', "ublk: a block device"),
        (
            '{"front_end": "fuse", "because": "opening /dev/ublk-control: No such file"}',
            "FUSE and loop devices; not ublk: opening /dev/ublk-control: No such file (`modprobe ub",
        ),
        ("nonsense", "FUSE and loop devices; not ublk: "),
    ],
)
def test_the_front_end_is_named_with_the_reason(tmp_path: Path, said: str, detail: str) -> None:
    server = tmp_path / "fscost-disk"
    server.write_text(f"#!/bin/sh\necho '{said}'\n")
    server.chmod(0o755)
    [check] = [
        each for each in conditions.checks([("fscost-disk", server)]) if each.name == "front end"
    ]
    assert check.ok
    assert check.detail.startswith(detail)
