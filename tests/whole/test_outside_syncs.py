"""System calls of other programs during a native cell, counted by the kernel's tracepoints."""

import itertools
import os
import threading
from pathlib import Path

import pytest

from fscost import profile
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.results import TOTAL
from fscost.run import Local, RunSpec, StoppingRule, execute
from fscost.workload.model import Step, Workload

METRIC = "outside_sync_calls"
END = b"e"
pytestmark = pytest.mark.root


def outsider(ready: int, go: int, call: str) -> None:
    """In each attempt, wait until its workload has made its own calls; make others in the first."""
    for count in itertools.chain([3], itertools.repeat(0)):
        if os.read(ready, 1) == END:
            return
        for _ in range(count):
            eval(call, {"os": os})
        os.write(go, b"\n")


@pytest.mark.parametrize(
    ("traced", "call"),
    [
        # Nobody else makes this call, and it does nothing.
        ("sched_rr_get_interval", "os.sched_rr_get_interval(0)"),
        # It disturbs the cells of all other tests.
        pytest.param("sync", "os.sync()", marks=pytest.mark.long),
    ],
)
def test_only_calls_from_outside_a_cell_count_and_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traced: str, call: str
) -> None:
    monkeypatch.setattr("fscost.lab.native.lab.OUTSIDE_SYNC_CALLS", (traced,))
    folder = tmp_path / "shared"
    folder.mkdir()
    fifos = [folder / name for name in ("ready", "go")]
    for fifo in fifos:
        os.mkfifo(fifo)
    ready, go = (os.open(fifo, os.O_RDWR) for fifo in fifos)
    own = f"python3 -c 'import os; [{call} for _ in range(5)]'"
    shell = f"{own}; printf r >{folder}/ready; read answer <{folder}/go"
    spec = RunSpec(
        profiles=(profile.resolve("ext4"),),
        workload=Workload("mine", (Step("work", shell, timeout_s=60),), disk_bytes=1 << 20),
        folder=tmp_path / "run",
        stopping=StoppingRule(1, 1),
        disk_size_bytes=320 << 20,
        writable=(folder,),
    )
    helper = threading.Thread(target=outsider, args=(ready, go, call))
    helper.start()
    try:
        lab = Local(NativeLab(find_binaries()))
        outcome = execute(spec, lab, lock=f"fscost.test.{os.getpid()}")
    finally:
        os.write(ready, END)
        helper.join()
        os.close(ready)
        os.close(go)
    manifest = outcome.results.manifest
    assert [failed.because for failed in manifest.failed] == []
    [cell] = manifest.done
    assert cell.facts[METRIC] == {"kept": 0, "dropped": [3]}
    counted = {
        row["phase"]: row["value"]
        for row in outcome.results.samples.to_pylist()
        if row["metric"] == METRIC
    }
    assert counted == {"mkfs": 0, "mount": 0, "work": 0, TOTAL: 0}
