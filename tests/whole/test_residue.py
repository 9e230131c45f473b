"""No residue: whichever of our processes is killed, at whatever instant, nothing of ours stays and the next run works."""

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
INSTANTS = 30
PARTS = 6
LINGER_S = 60
VICTIMS = ("runner", "agent", "init", "disk server", "workload")


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


residue = _module("residue")
pytestmark = pytest.mark.root


class Runner:
    """A process that runs one cell, in a session and with a temporary folder of its own."""

    def __init__(self, spelled: str, out: Path, temporary: Path, linger_s: int = LINGER_S) -> None:
        self.tag = f"FSCOST_RESIDUE={uuid.uuid4().hex}"
        temporary.mkdir(exist_ok=True)
        self.watch = residue.Watch(self.tag, temporary)
        name, _, value = self.tag.partition("=")
        python_path = os.pathsep.join(path for path in sys.path if path)
        self.out = out
        self.log = out.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, HERE / "one_cell.py", spelled, out, str(linger_s)],
                env=os.environ | {name: value, "TMPDIR": str(temporary), "PYTHONPATH": python_path},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.log.read_text()

    def find(self, victim: str) -> int | None:
        """The number of the victim, if it lives; what is seen of the family is remembered."""
        if victim == "runner":
            return self.process.pid
        family = residue.family(self.process.pid)
        self.watch.known.update(family)
        for process in family:
            if kind_of(process.command) == victim:
                return int(process.pid)
        return None

    def kill(self, victim: str, after_s: float) -> bool:
        """SIGKILL at an instant; where the victim is not there yet, as soon as it is. False: the cell ended before."""
        begin = time.monotonic()
        while self.process.poll() is None:
            pid = self.find(victim)
            if pid is not None and time.monotonic() - begin >= after_s:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    return True
            time.sleep(0.01)
        return False


def kind_of(command: str) -> str:
    words = command.split()
    program = Path(words[0]).name if words else ""
    if program == "fscost-disk":
        return "disk server"
    if program == "fscost-agent":
        return "agent" if words[1:2] == ["run"] else "init"
    return "workload" if program in ("sh", "dd", "rm", "sleep") else "other"


def run_whole(spelled: str, folder: Path, name: str) -> float:
    """A run that nobody kills must be done and leave nothing; returns how long it took."""
    begin = time.monotonic()
    runner = Runner(spelled, folder / name, folder / "tmp", linger_s=0)
    assert runner.process.wait(timeout=120) == 0, runner.said()
    took_s = time.monotonic() - begin
    assert runner.said().splitlines()[-1].startswith("done"), runner.said()
    assert runner.watch.left() == set()
    return took_s


def test_what_stays_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look itself: without it every test below would pass for the wrong reason."""
    monkeypatch.setattr(residue, "LIMIT_S", 0.5)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "point").mkdir()
    watch = residue.Watch("FSCOST_RESIDUE=seen", tmp_path / "tmp")
    assert watch.left() == set()
    sleeper = subprocess.Popen(["sleep", "60"], env=os.environ | {"FSCOST_RESIDUE": "seen"})
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "point"], check=True)
    (tmp_path / "tmp" / "file").write_text("")
    try:
        assert {found.split()[0] for found in watch.left()} == {"process", "mount", "file"}
    finally:
        subprocess.run(["umount", tmp_path / "point"], check=True)
        sleeper.kill()
        sleeper.wait()
    (tmp_path / "tmp" / "file").unlink()
    assert watch.left() == set()


@pytest.mark.parametrize("part", range(PARTS))
def test_sigkill_at_random_instants(tmp_path: Path, seed: int, part: int) -> None:
    dice = random.Random(f"{seed}/{part}")
    spelled = ("ext4", "xfs", "btrfs")[part % 3]
    took_s = run_whole(spelled, tmp_path, "before")
    for number in range(INSTANTS // PARTS):
        victim, after_s = VICTIMS[number % len(VICTIMS)], dice.uniform(0.0, took_s)
        shown = f"seed {seed}, {spelled}: {victim} killed after {after_s:.3f} s of {took_s:.1f}"
        print(shown)
        runner = Runner(spelled, tmp_path / f"killed{number}", tmp_path / "tmp")
        killed = runner.kill(victim, after_s)
        try:
            runner.process.wait(timeout=LINGER_S / 2)
        except subprocess.TimeoutExpired:
            runner.process.kill()
            runner.process.wait()
            pytest.fail(f"{shown}: the runner hangs\n{runner.said()}")
        assert runner.watch.left() == set(), f"{shown}\n{runner.said()}"
        if killed and victim != "runner":
            last = runner.said().splitlines()[-1]
            ended = any(line.startswith(("failed", "done")) for line in runner.said().splitlines())
            assert ended, f"{shown}: no result\n{runner.said()}"
            assert not (runner.out / "recording.fscost").exists(), f"{shown}: {last}"
    run_whole(spelled, tmp_path, "after")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_terminate(tmp_path: Path, number: signal.Signals) -> None:
    runner = Runner("ext4", tmp_path / "cell", tmp_path / "tmp")
    while runner.find("workload") is None and runner.process.poll() is None:
        time.sleep(0.02)
    runner.process.send_signal(number)
    runner.process.wait(timeout=30)
    assert runner.watch.left() == set()
    if number == signal.SIGINT:
        assert not (tmp_path / "cell" / "recording.fscost").exists()
        assert "KeyboardInterrupt" in runner.said()
