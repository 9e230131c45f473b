"""No residue: whichever of our processes is killed, at any instant, nothing of ours stays and the
next run works."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.variants import some

from . import residue
from .residue import Runner, run_whole

INSTANTS = 30
PARTS = 6
LINGER_S = 600
VICTIMS = ("runner", "agent", "init", "disk server", "workload")
SCRIPT = "one_cell.py"

pytestmark = pytest.mark.root


def test_what_stays_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The detection itself works: otherwise every test below would pass for the wrong reason."""
    monkeypatch.setattr(residue, "LIMIT_S", 0.5)
    for name in ("tmp", "point", "cell"):
        (tmp_path / name).mkdir()
    watch = residue.Watch("FSCOST_RESIDUE=seen", tmp_path / "tmp", tmp_path / "cell")
    assert watch.left() == set()
    sleepers = [subprocess.Popen(["sleep", "60"], env=os.environ | {"FSCOST_RESIDUE": "seen"})]
    with (tmp_path / "cell" / "agent.log").open("w") as errors:
        sleepers += [subprocess.Popen(["sleep", "60"], env={}, stderr=errors)]
    subprocess.run([*watch.inside, "mount", "-t", "tmpfs", "tmpfs", tmp_path / "point"], check=True)
    (tmp_path / "tmp" / "file").write_text("")
    try:
        kinds = sorted(found.split()[0] for found in watch.left())
        assert kinds == ["file", "mount", "process", "process"]
    finally:
        subprocess.run([*watch.inside, "umount", tmp_path / "point"], check=True)
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    (tmp_path / "tmp" / "file").unlink()
    assert watch.left() == set()


def test_a_mount_that_spreads_is_seen_and_one_of_another_test_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residue, "LIMIT_S", 0.5)
    for name in ("tmp", "point"):
        (tmp_path / name).mkdir()
    watch = residue.Watch("FSCOST_RESIDUE=seen", tmp_path / "tmp")
    mount = ["mount", "-t", "tmpfs", "tmpfs", tmp_path / "point"]
    subprocess.run(mount, check=True)
    try:
        assert watch.left() == set()
    finally:
        subprocess.run(["umount", tmp_path / "point"], check=True)
    # Simulates an agent that does not make the mounts of its own namespace private.
    subprocess.run(
        [*watch.inside, "unshare", "--mount", "--propagation", "unchanged", *mount], check=True
    )
    assert [found.split()[0] for found in watch.left()] == ["mount"]


@pytest.mark.parametrize("part", some(range(PARTS), 1))
def test_sigkill_at_random_instants(tmp_path: Path, seed: int, part: int) -> None:
    dice = random.Random(f"{seed}/{part}")
    spelled = ("ext4", "xfs", "btrfs")[part % 3]
    took_s = run_whole(SCRIPT, spelled, tmp_path / "before")
    for number in range(INSTANTS // PARTS):
        victim, after_s = VICTIMS[number % len(VICTIMS)], dice.uniform(0.0, took_s)
        shown = f"seed {seed}, {spelled}: {victim} killed after {after_s:.3f} s of {took_s:.1f}"
        print(shown)
        runner = Runner(SCRIPT, spelled, tmp_path / f"killed{number}", LINGER_S)
        killed = runner.kill(victim, after_s)
        assert runner.ended(LINGER_S / 2), f"{shown}: the runner hangs\n{runner.said()}"
        assert runner.watch.left() == set(), f"{shown}\n{runner.said()}"
        if killed and victim != "runner":
            last = runner.said().splitlines()[-1]
            ended = any(line.startswith(("failed", "done")) for line in runner.said().splitlines())
            assert ended, f"{shown}: no result\n{runner.said()}"
            assert not (runner.out / "recording.fscost").exists(), f"{shown}: {last}"
    run_whole(SCRIPT, spelled, tmp_path / "after")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_terminate(tmp_path: Path, number: signal.Signals) -> None:
    runner = Runner(SCRIPT, "ext4", tmp_path / "cell", LINGER_S)
    while runner.find("workload") is None and runner.process.poll() is None:
        time.sleep(0.02)
    runner.process.send_signal(number)
    runner.process.wait(timeout=120)
    assert runner.watch.left() == set()
    if number == signal.SIGINT:
        assert not (tmp_path / "cell" / "recording.fscost").exists()
        assert "KeyboardInterrupt" in runner.said()
