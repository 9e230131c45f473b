"""The two labs measure the same work: what must not depend on the lab is the same, and what does is
as docs/vm.md says."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fscost.results import load, written

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow]

PROGRAM = (sys.executable, "-c", "from fscost.cli import main; main()")
PROFILES = ("ext4", "xfs", "btrfs")
PHASES = ("mkfs", "unpack", "unpack-over", "delete")
WHOLE = "device_write_bytes"
INODE_BYTES = 176
"""Least that the log of xfs holds of an inode (`struct xfs_log_dinode`)."""
OF_ITS_OWN = re.compile(
    r"uuid|fsid|^csum\s|^crc =|^Checksum:|created:|time:|checked:|device=|^generation\s|^root\s",
    re.IGNORECASE,
)
"""Lines of a superblock that no two file systems have alike. The last two change with each commit of
btrfs: whether there was one since mkfs depends on how soon the thread `btrfs-uuid` runs after the
mount."""


def without_uuid(command: list[str]) -> list[str]:
    """In guests mkfs.xfs gets one of the seed (docs/vm.md)."""
    return [word for word in command if not word.startswith("uuid=") and word != "-m"]


@dataclass(frozen=True)
class Measured:
    """By one lab."""

    folder: Path
    values: Mapping[tuple[str, str, str], float]
    facts: Mapping[str, Mapping[str, Any]]

    def sum(self, profile: str, metric: str, phases: tuple[str, ...] = PHASES) -> float:
        return sum(self.values[profile, phase, metric] for phase in phases)

    def journal(self, profile: str, phase: str) -> dict[str, int]:
        """What `fscost explain` says of the log."""
        recording = str(self.folder / f"cells/{profile}.0/recording.fscost")
        words = ["explain", recording, "--phase", phase, "--json"]
        said = json.loads(subprocess.check_output([*PROGRAM, *words], text=True))
        found: dict[str, int] = said["journal"]
        return found


def measured(lab: str, folder: Path, seed: int) -> Measured:
    command = [
        *PROGRAM,
        "compare",
        "--json",
        "--out",
        str(folder),
        "--lab",
        lab,
    ]
    command += ["--workload", "small-files", "--seed", str(seed), "--size", "4G", "--keep", "one"]
    command += [
        "--min-repetitions",
        "1",
        "--max-repetitions",
        "1",
        *(word for profile in PROFILES for word in ("--on", profile)),
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["not_explained"] == []
    run = load(folder)
    rows = [row for row in run.samples.to_pylist() if not row["disk"]]
    manifest = json.loads((folder / "manifest.json").read_text())
    return Measured(
        folder,
        {(row["profile"], row["phase"], row["metric"]): row["value"] for row in rows},
        {cell["profile"]: cell["facts"] for cell in manifest["cells"]},
    )


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Measured]:
    """The native lab's, and the VM lab's."""
    folder, seed = tmp_path_factory.mktemp("agreement"), 5
    native, vm = (measured(lab, folder / lab, seed) for lab in ("native", "vm"))
    return native, vm


Labs = tuple[Measured, Measured]


@pytest.mark.parametrize("profile", PROFILES)
def test_both_labs_make_the_same_file_system(labs: Labs, profile: str) -> None:
    made = [
        [
            line
            for line in lab.facts[profile]["inspect"]["superblock"].splitlines()
            if not OF_ITS_OWN.search(line)
        ]
        for lab in labs
    ]
    assert made[0] == made[1]
    assert len(made[0]) > 40
    assert (
        len(
            {
                json.dumps(
                    [without_uuid(command) for command in lab.facts[profile]["plan"]["mkfs"]]
                )
                for lab in labs
            }
        )
        == 1
    )
    assert len({json.dumps(lab.facts[profile]["plan"]["steps"]) for lab in labs}) == 1
    assert labs[0].sum(profile, WHOLE, ("mkfs",)) == labs[1].sum(profile, WHOLE, ("mkfs",))


@pytest.mark.parametrize("profile", PROFILES)
def test_what_the_files_hold_is_written_alike(labs: Labs, profile: str) -> None:
    """To the byte, but where btrfs writes back early and finds a file half written: its block is
    written twice."""
    for phase in PHASES:
        native, vm = (lab.values[profile, phase, written.FILE_DATA] for lab in labs)
        assert vm == pytest.approx(native, rel=0.001 if profile == "btrfs" else 0), phase
    assert labs[0].sum(profile, written.FILE_DATA) > 30 << 20


def test_ext4_writes_as_much_within_one_percent(labs: Labs) -> None:
    native, vm = labs
    for phase in PHASES:
        assert vm.values["ext4", phase, WHOLE] == pytest.approx(
            native.values["ext4", phase, WHOLE], rel=0.01
        ), phase


def test_xfs_writes_as_much_but_for_its_log(labs: Labs) -> None:
    """When the log is forced depends on threads, on the kernel and on the host's load: how often an
    inode is in it is no lab's (docs/vm.md)."""
    native, vm = (
        [
            lab.sum("xfs", WHOLE, (phase,)) - lab.sum("xfs", written.JOURNAL, (phase,))
            for phase in PHASES
        ]
        for lab in labs
    )
    assert vm[0] == native[0], "mkfs"
    # A log that is full, or half a minute old, is written home early.
    assert sum(vm[1:]) == pytest.approx(sum(native[1:]), rel=0.01)


@pytest.mark.parametrize("phase", ["unpack", "unpack-over", "delete"])
def test_the_log_of_xfs_holds_the_same_blocks_and_inodes(labs: Labs, phase: str) -> None:
    """How often the log is forced depends on kernel threads, and what changes afterwards is logged
    again: only how many different blocks and inodes a phase logs is the same (docs/vm.md)."""
    different = []
    for lab in labs:
        journal = lab.journal("xfs", phase)
        assert journal["journal_write_bytes"] == lab.sum("xfs", written.JOURNAL, (phase,))
        assert journal["journal_write_bytes"] > INODE_BYTES * journal["copies"]
        different.append(journal["copies"] - journal["copies_again"])
    assert min(different) > 3500, "3,000 files and 500 folders"
    assert max(different) < 1.1 * min(different)


def test_btrfs_writes_as_much_but_for_its_trees(labs: Labs) -> None:
    """How often, and how full, its trees are written depends on when its workers run: two native
    runs differ as much (docs/vm.md)."""
    native, vm = labs
    besides = [lab.sum("btrfs", WHOLE) - lab.sum("btrfs", written.METADATA) for lab in labs]
    assert besides[1] == pytest.approx(besides[0], rel=0.001)
    assert vm.sum("btrfs", written.METADATA) == pytest.approx(
        native.sum("btrfs", written.METADATA), rel=0.3
    )
    assert vm.sum("btrfs", WHOLE) == pytest.approx(native.sum("btrfs", WHOLE), rel=0.05)
