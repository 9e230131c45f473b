"""No residue of guests: whichever process is killed, at any instant, nothing stays and the next run
works."""

import itertools
import random
import signal
from pathlib import Path

import pytest
from tests.variants import some

from fscost.lab.vm import VmLab

from .residue import Runner, run_whole

pytestmark = [pytest.mark.guest, pytest.mark.slow]

LINGER_S = 30
SCRIPT = "one_guest_cell.py"
ENDS = {"machine": "failed guest ", "disk server": "failed disk-server "}
"""Outcome of a cell whose machine or disk server is killed while it works."""


@pytest.mark.parametrize(
    ("victim", "while_working"), some(itertools.product(["runner", *ENDS], [False, True]), 1)
)
def test_sigkill_at_a_random_instant(
    tmp_path: Path, vm_lab: VmLab, seed: int, victim: str, while_working: bool
) -> None:
    took_s = run_whole(SCRIPT, "ext4", tmp_path / "before")
    after_s = random.Random(f"{seed}/{victim}/{while_working}").uniform(0.0, took_s)
    shown = (
        f"seed {seed}: {victim} killed {after_s:.3f} s after"
        f" {'its first step' if while_working else 'its begin'}; a cell takes {took_s:.1f} s"
    )
    print(shown)
    runner = Runner(SCRIPT, "ext4", tmp_path / "killed", LINGER_S)
    if while_working:
        runner.until("first")
    killed = runner.kill(victim, after_s)
    is_begun = "first" in runner.said()
    assert runner.ended(120), f"{shown}: the runner hangs\n{runner.said()}"
    shown += f"\n{runner.said()}"
    assert runner.watch.left() == set(), shown
    last = ["", *runner.said().splitlines()][-1]
    # An emulated guest does not really wait when it sleeps, so the kill may come after the cell is
    # done.
    is_done = last.startswith("done ")
    assert killed or is_done, shown
    if victim != "runner":
        # A machine that dies during its start is restarted, or is reported as not started.
        ends = (ENDS[victim],) if is_begun else ("failed ", "fscost.errors.HostError: ")
        assert is_done or last.startswith(ends), shown
        assert (runner.out / "recording.fscost").exists() == is_done, shown
    run_whole(SCRIPT, "ext4", tmp_path / "after")


@pytest.mark.long
def test_who_is_killed_while_making_a_snapshot_leaves_nothing_for_long(
    tmp_path: Path, no_snapshots: Path, seed: int
) -> None:
    environment = {"XDG_CACHE_HOME": str(no_snapshots)}
    snapshots = no_snapshots / "fscost/snapshots"
    runner = Runner(SCRIPT, "ext4", tmp_path / "killed", LINGER_S, environment)
    runner.until("booting")
    assert runner.kill("runner", random.Random(seed).uniform(0.0, 3.0)), runner.said()
    runner.process.wait()
    assert runner.watch.left() == set()
    assert list(snapshots.glob("[!.]*")) == []
    run_whole(SCRIPT, "ext4", tmp_path / "after", environment)
    assert [path.name for path in snapshots.glob(".*")] == [".lock"]


def test_ctrl_c(tmp_path: Path, vm_lab: VmLab) -> None:
    runner = Runner(SCRIPT, "ext4", tmp_path / "cell", LINGER_S)
    runner.until("second")
    runner.process.send_signal(signal.SIGINT)
    runner.process.wait(timeout=120)
    assert runner.watch.left() == set()
    assert not (tmp_path / "cell" / "recording.fscost").exists()
    assert "KeyboardInterrupt" in runner.said()
