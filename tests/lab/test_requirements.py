"""Each reason to skip names what is missing and how to enable the cell."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from fscost.errors import HostError, InputError
from fscost.host import conditions, tools
from fscost.lab.cell.binaries import Binaries
from fscost.lab.cell.requirements import unsupported_reason
from fscost.lab.native import NativeLab
from fscost.lab.native.lab import _unsupported_type_reason
from fscost.lab.native.real_device import RealDevice
from fscost.profile.model import Array, FormatPlan, Profile


def reason(stage: Any, disk_size_bytes: int | None = None, **changes: Any) -> str | None:
    formatted = dataclasses.replace(
        stage.lab._plan_format(stage.cell.profile, 1 << 30, 0), **changes
    )
    return unsupported_reason(
        stage.cell, disk_size_bytes, lambda *_: formatted, _unsupported_type_reason
    )


def test_nothing_missing(stage: Any) -> None:
    assert reason(stage) is None


def test_a_missing_tool_names_its_package(stage: Any) -> None:
    found = reason(stage, needs_tools=("sh", "mkfs.udf"))
    assert found == "ext4 needs mkfs.udf, which is missing; `apt install udftools`"


def test_a_missing_workload_tool(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.cell = dataclasses.replace(
        stage.cell,
        workload=dataclasses.replace(stage.cell.workload, needs_tools=("fio", "sqlite3")),
    )
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools, "search_path", lambda: "/nowhere")
    found = reason(stage, needs_tools=())
    assert found == "mine needs fio, sqlite3, which are missing; `apt install fio sqlite3`"


def test_a_file_system_that_the_kernel_lacks(stage: Any) -> None:
    found = reason(stage, mount_type="reiserfs9")
    assert found is not None
    assert "no reiserfs9" in found


def test_an_array_would_be_residue(stage: Any) -> None:
    profile = dataclasses.replace(stage.cell.profile, array=Array("1", 2))
    found = stage.lab.unsupported_reason(dataclasses.replace(stage.cell, profile=profile))
    assert found is not None
    assert "outlive" in found
    assert "`--lab vm`" in found
    assert stage.lab.unsupported_type_reason(profile) is not None, (
        "so that a run without --lab goes to the VM lab"
    )
    assert stage.lab.unsupported_type_reason(stage.cell.profile) is None


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
        unsupported_reason(stage.cell, None, refuse, _unsupported_type_reason)
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


@pytest.mark.parametrize(("front_end", "is_required"), [("ublk", False), ("fuse", True)])
def test_fuse_is_required_where_it_serves_the_disks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, front_end: str, is_required: bool
) -> None:
    """FUSE and loop devices serve real devices only, if ublk serves the others."""
    server = tmp_path / "fscost-disk"
    server.write_text(f"""#!/bin/sh\necho '{{"front_end": "{front_end}", "because": null}}'\n""")
    server.chmod(0o755)
    absent = conditions.Check("FUSE", False, "absent", "load it", required=True)
    monkeypatch.setattr(conditions, "_fuse_checks", lambda: [absent])
    [shown] = [each for each in conditions.checks([("fscost-disk", server)]) if not each.ok][:1]
    assert (shown.name, shown.required) == ("FUSE", is_required)
    lab = NativeLab(Binaries(tmp_path / "fscost-agent", server))
    assert refused(lab) is is_required
    path, real = Path("/dev/sdz"), cast(RealDevice, object())
    assert refused(NativeLab(lab._binaries, real_disks={str(path): real}))
    assert not refused(NativeLab(lab._binaries, device=real))


def refused(lab: NativeLab) -> bool:
    """True if the lab cannot run for lack of FUSE."""
    try:
        lab.check()
    except HostError as error:
        return error.what.startswith("FUSE: absent")
    return False


def _refuse(*_: object, **__: object) -> int:
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
    """Root in rootless podman, for example, has every capability, and may not mount an ext4."""
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
            (
                "FUSE and loop devices; not ublk: opening /dev/ublk-control: No such file"
                " (`modprobe ub"
            ),
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
