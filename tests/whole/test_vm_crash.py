"""States in guests: the same verdicts as natively, and a kernel that panics costs one guest."""

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import WRITE, Body, event, write

from fscost import capture
from fscost.cli.examine import sources
from fscost.cli.examiners import Examined, Examiners, in_guests, natively
from fscost.crash import states
from fscost.crash.again import again, rebuilt
from fscost.crash.again import control as again_control
from fscost.crash.explore import Limits, Source, control, examined_all, explore, planned
from fscost.crash.journal import answers
from fscost.crash.losses import lost
from fscost.lab.vm import VmLab
from fscost.results import load

from .residue import family, processes

pytestmark = [pytest.mark.guest, pytest.mark.slow]
PROGRAM = (sys.executable, "-c", "from fscost.cli import main; main()", "crash", "--wait")
BLOCK, SIZE = 4096, 8 << 20
_UID_AT = 2
"""Place of the owner in an inode (fs/ext4/ext4.h, struct ext4_inode)."""


@pytest.mark.root
@pytest.mark.parametrize(
    "name",
    [
        "ext4 -o nobarrier",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("xfs", "btrfs", "btrfs-raid1")),
    ],
)
def test_guests_and_this_kernel_agree(name: str, tmp_path: Path, vm_lab: VmLab) -> None:
    few = ("--rounds", "2", "--cuts", "3", "--states", "6")
    done = subprocess.run([*PROGRAM, *few, "--on", name, "-o", "run"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    results = load(tmp_path / "run")
    [(profile, source)] = sources(results, states.load(results.folder).workload)
    # Kernels of different versions may judge garbage differently; a disk that keeps the order
    # of writes leaves none, but loses data without barriers.
    device = "in-order" if "nobarrier" in name else "reorder-4k"
    limits = Limits(cuts=3, states_per_cut=6, device=device)
    examiners = natively(results.folder), in_guests(vm_lab)
    on_kernel, in_there = (answers(each(profile), profile.name, None) for each in examiners)
    here = explore(source, limits, on_kernel)
    there = explore(source, limits, in_there)
    assert len(here.outcomes) > 3
    assert any(each.is_broken for each in here.outcomes) == ("nobarrier" in name)

    def found(outcomes: Any) -> list[object]:
        return [(each.state, each.mounts, each.needs_repair, each.broken) for each in outcomes]

    assert found(there.outcomes) == found(here.outcomes)
    if "nobarrier" not in name:
        noticed = control(source, limits, in_there)
        assert noticed == control(source, limits, on_kernel)
        assert noticed.noticed > 0


def recorded(folder: Path, name: str) -> tuple[Examined, Source, Examiners]:
    """Record a profile on this kernel. Return it, and what examines it here."""
    few = ("--rounds", "1", "--cuts", "1", "--states", "4")
    subprocess.run([*PROGRAM, *few, "--on", name, "-o", "run"], cwd=folder, check=True)
    results = load(folder / "run")
    [(profile, source)] = sources(results, states.load(results.folder).workload)
    return profile, source, natively(results.folder)


@pytest.mark.root
def test_a_guest_s_recovery_is_cut(tmp_path: Path, vm_lab: VmLab) -> None:
    """What a replay of the journal wrote is pending until it is flushed."""
    profile, source, _ = recorded(tmp_path, "ext4")
    crash = capture.crash(source.recording)
    limits = Limits(states_per_cut=4, again=3)
    [first, *_] = planned(crash, crash.cuts(source.begin_ns, source.end_ns, 1), limits).states
    answered = answers(in_guests(vm_lab)(profile), profile.name, None)
    outcomes = examined_all(source, limits.device, [first], answered)
    found = again(source, limits, outcomes, answered)
    assert (found.firsts, len(found.seconds), found.broken) == (1, 3, [])
    assert any(each.numbers.pending > 0 for each in found.seconds)
    assert all(each.outcome.mounts for each in found.seconds)
    numbers = found.seconds[0].numbers
    recording = tmp_path / "recovery"
    outcome = rebuilt(source, limits.device, numbers, answered, recording)
    assert (outcome.mounts, outcome.broken) == (True, [])
    with capture.opened(recording) as opened:
        assert [name for _, name, _ in opened.marks()] == ["mount", "end"]


@pytest.mark.root
@pytest.mark.long
def test_a_recovery_without_flushes_is_broken_in_guests(tmp_path: Path, vm_lab: VmLab) -> None:
    profile, source, _ = recorded(tmp_path, "ext4")
    limits = Limits(cuts=4, states_per_cut=4)
    answered = answers(in_guests(vm_lab)(profile), profile.name, None)
    outcomes = explore(source, limits, answered).outcomes
    assert again_control(source, limits, outcomes, answered).broken


@pytest.mark.root
@pytest.mark.long
def test_guests_lose_disks_as_this_kernel_does(tmp_path: Path, vm_lab: VmLab) -> None:
    profile, source, here = recorded(tmp_path, "ext4 -J device={disk.journal}")
    found = [
        lost(source, Limits(), answers(examiners(profile), profile.name, None))
        for examiners in (in_guests(vm_lab), here)
    ]
    # tune2fs also replays an old journal that it finds by its identity on any disk of the machine:
    # here, states share it.
    there, natively_lost = (
        [
            replace(each, words=())
            for each in part
            if each.how != "stale" or each.way in ("mount", "mount -o ro,noload", "e2fsck -fy")
        ]
        for part in found
    )
    assert there == natively_lost
    assert {each.how for each in there} == {"gone", "blank", "stale"}
    assert any(each.clean for each in there)
    assert not all(each.mounts for each in there)


@pytest.mark.root
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_signal_ends_the_guests(tmp_path: Path, number: signal.Signals, code: int) -> None:
    few = ("--rounds", "1", "--cuts", "2", "--states", "4")
    subprocess.run([*PROGRAM, *few, "--on", "ext4", "-o", "run"], cwd=tmp_path, check=True)
    again = [*PROGRAM, "run", "--lab", "vm"]
    run = subprocess.Popen(again, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    mine = family(run.pid)
    while not any("qemu-system" in each.command for each in mine):
        assert run.poll() is None
        time.sleep(0.05)
        mine = family(run.pid)
    run.send_signal(number)
    _, err = run.communicate()
    assert run.returncode == code, err
    assert "Traceback" not in err
    while set(mine) & set(processes().values()):
        time.sleep(0.05)  # The kernel kills them with their parent.


def test_a_panic_costs_one_guest_and_is_a_finding(tmp_path: Path, vm_lab: VmLab) -> None:
    """A wrong checksum of the root's inode is an error for the kernel (ext4(5), errors=panic)."""
    image = tmp_path / "image"
    make = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-b", str(BLOCK), image, "8M"]
    subprocess.run(make, check=True, capture_output=True)
    where = ["debugfs", "-R", "imap <2>", image]
    told = subprocess.run(where, check=True, capture_output=True, text=True).stdout
    [(block, offset)] = re.findall(r"located at block (\d+), offset 0x([0-9a-f]+)", told)
    content = bytearray(image.read_bytes())
    content[int(block) * BLOCK + int(offset, 16) + _UID_AT] ^= 1
    places = [at for at in range(0, SIZE, BLOCK) if content[at : at + BLOCK].strip(b"\0")]
    body = Body(
        [event(WRITE, at, BLOCK, number * BLOCK) for number, at in enumerate(places)],
        b"".join(content[at : at + BLOCK] for at in places),
    )
    recording = write(tmp_path / "recording", [(1, body)], size=SIZE)
    about = {
        "recording": str(recording),
        "workload": "files",
        "type": "ext4",
        "options": "errors=panic",
        "device": "reorder-4k",
        "disks": [{"name": "disk0", "size_bytes": SIZE}],
    }
    job = {"at_ns": 1, "kept": [], "kept_promises": {}, "without": []}
    everything = {**job, "kept": list(range(len(places)))}
    answered = answers(in_guests(vm_lab)(Examined("ext4", "ext4")), "ext4", None)
    first, second, third = answered(about, [job, everything, job], lambda done, of: None)
    assert first | {"repair_s": 0} == third | {"repair_s": 0}
    assert not first["mounts"]
    assert second["stops_kernel"]
    assert any("Kernel panic - not syncing: EXT4-fs" in line for line in second["words"])
