"""Ctrl-C during a comparison with guests side by side, and its resumption."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fscost.lab.vm import VmLab
from fscost.results import load

from . import residue

pytestmark = [pytest.mark.guest, pytest.mark.slow]

PROGRAM = [sys.executable, "-c", "from fscost.cli import main; main()", "compare", "--json"]
BEGIN = [
    "--lab",
    "vm",
    "--on",
    "ext2",
    "--on",
    "ext4",
    "--min-repetitions",
    "2",
    "--max-repetitions",
    "2",
    "--size",
    "1G",
    "--out",
]
WORK = ["--", "sh", "-c", "head -c 300000 /dev/urandom > file; sleep 1"]


def cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the cells that ended, by name."""
    try:
        return {
            cell["cell"]: cell
            for cell in json.loads((folder / "manifest.json").read_text())["cells"]
        }
    except FileNotFoundError:
        return {}


def samples(folder: Path, names: set[str]) -> list[dict[str, Any]]:
    return [row for row in load(folder).samples.to_pylist() if row["cell"] in names]


def qemu_below(process: int) -> list[int]:
    """Return the processes of QEMU that descend from a process."""
    found = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                if Path(f"/proc/{child}/comm").read_text().startswith("qemu"):
                    found.append(child)
                found += qemu_below(child)
    return found


def processor_s(process: int) -> float:
    """Return the processor time that a process has used (proc_pid_stat(5))."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_keeps_the_cells_that_are_done(tmp_path: Path, vm_lab: VmLab) -> None:
    folder = tmp_path / "run"
    tag = f"FSCOST_RESIDUE={tmp_path}"
    (tmp_path / "tmp").mkdir()
    watch = residue.Watch(tag, tmp_path / "tmp")
    name, _, value = tag.partition("=")
    environment = os.environ | {name: value, "TMPDIR": str(tmp_path / "tmp")}
    with (tmp_path / "said").open("w+") as said:
        process = subprocess.Popen(
            [*watch.inside, *PROGRAM, *BEGIN, folder, *WORK],
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        while not cells(folder) and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130, (tmp_path / "said").read_text()
    assert watch.left() == set()
    kept = cells(folder)
    assert 1 <= len(kept) < 4
    assert {cell["status"] for cell in kept.values()} == {"done"}
    measured = samples(folder, set(kept))
    ended = subprocess.run([*PROGRAM, "--resume", folder], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = cells(folder)
    assert sorted(found) == ["ext2.0", "ext2.1", "ext4.0", "ext4.1"]
    assert {cell["status"] for cell in found.values()} == {"done"}
    assert {name: found[name] for name in kept} == kept, "not run again"
    assert samples(folder, set(kept)) == measured


def test_ctrl_c_does_not_wait_for_a_snapshot_that_is_being_made(
    tmp_path: Path, no_snapshots: Path
) -> None:
    said = tmp_path / "said"
    with said.open("w") as output:
        environment = os.environ | {"XDG_CACHE_HOME": str(no_snapshots)}
        process = subprocess.Popen(
            [*PROGRAM, *BEGIN, tmp_path / "run", *WORK],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        while "booting a guest" not in said.read_text() and process.poll() is None:
            time.sleep(0.1)
        # On a busy host, the guest would boot before the signal is handled, so it is stopped in its
        # boot, which takes some seconds of processor time.
        while process.poll() is None:
            machines = qemu_below(process.pid)
            if machines and processor_s(machines[0]) > 0.7:
                os.kill(machines[0], signal.SIGSTOP)
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130, said.read_text()
    assert list((no_snapshots / "fscost/snapshots").glob("[!.]*")) == [], said.read_text()
