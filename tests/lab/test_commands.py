"""--dry-run prints the commands that `run` would execute: complete, in order, and as text that a
shell accepts."""

import dataclasses
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.lab.cell.binaries import Binaries
from fscost.lab.cell.commands import _word
from fscost.lab.native import NativeLab


def test_the_commands_of_a_cell(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscost.host.base_directory", lambda: "/mnt")
    profile = dataclasses.replace(
        stage.cell.profile,
        mkfs_flags=("-O", "^has_journal"),
        mount_options="noatime",
        after_mount=(("chattr", "+A", "{dir}"),),
    )
    cell = dataclasses.replace(stage.cell, profile=profile)
    stage.options = dataclasses.replace(stage.options, drop_caches=True)
    recording = stage.recording
    assert stage.lab.commands(cell, stage.options) == [
        (
            f"/opt/fscost-disk serve --recording {recording} --disk"
            " main=1073741824,logical=512,physical=4096 &"
        ),
        "export disk_main=$(losetup --find --show --direct-io=on --sector-size 512 FUSE/main)",
        "mkfs.ext4 -q -O '^has_journal' \"$disk_main\"",
        "mount -t tmpfs tmpfs /mnt && mkdir /mnt/fs /mnt/input /mnt/scratch",
        'mount -t ext4 -o noatime "$disk_main" /mnt/fs',
        "chattr +A /mnt/fs",
        'dumpe2fs -h "$disk_main"',
        "cd /mnt/fs && FSCOST_SEED=7 sh -c 'tar xf /mnt/input/a.tar'",
        "sync -f /mnt/fs",
        "sync -f /mnt/fs; echo 3 > /proc/sys/vm/drop_caches",
        "cd /mnt/fs && FSCOST_SEED=7 JOBS=2 sh -c 'make -C /mnt/fs'",
        "sync -f /mnt/fs",
        "umount /mnt/fs",
    ]


@pytest.mark.parametrize("stage", [("main", "journal")], indirect=True)
@pytest.mark.parametrize(
    ("real", "shown"),
    [
        (
            None,
            [
                "export disk_main=/dev/ublkb0",
                "echo none >/sys/block/ublkb0/queue/scheduler",
                "export disk_journal=/dev/ublkb1",
                "echo none >/sys/block/ublkb1/queue/scheduler",
            ],
        ),
        # A cell with a real disk is served over FUSE entirely.
        (
            "/dev/sdz",
            [
                f"export disk_{disk}=$(losetup --find --show --direct-io=on --sector-size 512"
                f" FUSE/{disk})"
                for disk in ("main", "journal")
            ],
        ),
    ],
)
def test_disks_over_ublk_are_not_attached(
    stage: Any, monkeypatch: pytest.MonkeyPatch, real: str | None, shown: list[str]
) -> None:
    monkeypatch.setattr("fscost.host.base_directory", lambda: "/mnt")
    server = stage.folder / "fscost-disk"
    server.write_text("""#!/bin/sh\necho '{"front_end": "ublk", "because": null}'\n""")
    server.chmod(0o755)
    binaries = Binaries(stage.folder / "fscost-agent", server)
    claimed = (
        {}
        if real is None
        else {real: SimpleNamespace(identity={"major": 8, "minor": 0, "diskseq": 1})}
    )
    lab = NativeLab(binaries, plan_format=stage.lab._plan_format, real_disks=claimed)
    first, *rest = stage.cell.profile.disks
    disks = (dataclasses.replace(first, model=real or ""), *rest)
    profile = dataclasses.replace(stage.cell.profile, disks=disks)
    cell = dataclasses.replace(stage.cell, profile=profile)
    found = [
        line
        for line in lab.commands(cell, stage.options)
        if line.startswith(("export", "echo", "losetup"))
    ]
    assert found == shown


def test_what_runs_in_the_background_ends_before_each_unmount(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fscost.host.base_directory", lambda: "/mnt")
    plan_format = stage.lab._plan_format
    stage.lab._plan_format = lambda *given: dataclasses.replace(
        plan_format(*given),
        background=(("cleaner", "-n", "{dir}"),),
        after_unmount=(("mdadm", "--stop", "/dev/md0"),),
    )
    stage.options = dataclasses.replace(stage.options, settle="remount")
    first, *rest = stage.cell.workload.steps
    steps = (dataclasses.replace(first, settle="remount"), *rest)
    cell = dataclasses.replace(
        stage.cell, workload=dataclasses.replace(stage.cell.workload, steps=steps)
    )
    shown = [
        line
        for line in stage.lab.commands(cell, stage.options)
        if "background" in line or "mount " in line or "mdadm" in line
    ]
    begin, end = (
        'cleaner -n /mnt/fs & background="$background $!"',
        "kill $background; wait $background; background=",
    )
    mount = 'mount -t ext4 "$disk_main" /mnt/fs'
    tail = [
        end,
        f"umount /mnt/fs && {mount}",
        begin,
        end,
        "umount /mnt/fs",
        "mdadm --stop /dev/md0",
    ]
    assert shown[1:] == [mount, begin, *tail]


def test_nothing_is_run_or_made(stage: Any) -> None:
    stage.lab.commands(stage.cell, stage.options)
    assert not stage.options.cell_dir.exists()


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("plain", "plain"),
        ("{disk.main}", "/dev/loop1"),
        ("device={disk.journal},x y", "device=/dev/loop2,x y"),
        ("it's {dir}/$HOME", "it's /mnt/fs/$HOME"),
        ("{unknown}", "{unknown}"),
        ("${dir}", "${dir}"),
        ("", ""),
    ],
)
def test_a_shell_reads_back_each_word(word: str, shown: str) -> None:
    values = {
        "{dir}": "/mnt/fs",
        "{disk.main}": '"$disk_main"',
        "{disk.journal}": '"$disk_journal"',
    }
    script = f"disk_main=/dev/loop1 disk_journal=/dev/loop2; printf %s {_word(word, values)}"
    assert (
        subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        == shown
    )
