"""No residue of guests: whichever process is killed, at whatever instant, nothing stays and the next run works."""

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

from fscost.lab.vm import VmLab

pytestmark = [pytest.mark.guest, pytest.mark.slow]

HERE = Path(__file__).parent
INSTANTS = 3
VICTIMS = ("runner", "qemu-system-x86_64", "fscost-disk")
LINGER_S = 30


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


residue = _module("residue")


class Runner:
    """A process that runs one cell in a guest, in a session and with a temporary folder of its own."""

    def __init__(self, out: Path, linger_s: int, cache_home: Path | None = None) -> None:
        tag = f"FSCOST_RESIDUE={uuid.uuid4().hex}"
        temporary = out.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        self.watch = residue.Watch(tag, temporary)
        name, _, value = tag.partition("=")
        environment = os.environ | {name: value, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if cache_home is not None:
            environment["XDG_CACHE_HOME"] = str(cache_home)
        self.log = out.with_suffix(".log")
        with self.log.open("w") as log:
            command = [sys.executable, HERE / "one_guest_cell.py", "ext4", out, str(linger_s)]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def said(self) -> str:
        return self.log.read_text()

    def find(self, victim: str) -> int | None:
        family = residue.family(self.process.pid)
        self.watch.known.update(family)
        found = (
            [process.pid for process in family if Path(process.command.partition(" ")[0]).name == victim]
            if victim != "runner"
            else [self.process.pid]
        )
        return found[0] if found else None

    def kill(self, victim: str, after_s: float, number: signal.Signals = signal.SIGKILL) -> bool:
        """At an instant; where the victim is not there yet, as soon as it is. False: the cell ended before."""
        begin = time.monotonic()
        while self.process.poll() is None:
            pid = self.find(victim)
            if pid is not None and time.monotonic() - begin >= after_s:
                os.kill(pid, number)
                return True
            time.sleep(0.01)
        return False


def run_whole(folder: Path, name: str, cache_home: Path | None = None) -> float:
    """A run that nobody kills must be done and leave nothing; returns how long it took."""
    begin = time.monotonic()
    runner = Runner(folder / name, 0, cache_home)
    assert runner.process.wait(timeout=200) == 0, runner.said()
    took_s = time.monotonic() - begin
    assert runner.said().splitlines()[-1].startswith("done"), runner.said()
    assert runner.watch.left() == set()
    return took_s


def test_sigkill_at_random_instants(tmp_path: Path, vm_lab: VmLab, seed: int) -> None:
    dice = random.Random(seed)
    run_whole(tmp_path, "first")  # makes the snapshot if there is none
    took_s = run_whole(tmp_path, "before")
    for number in range(INSTANTS):
        victim, after_s = VICTIMS[number % len(VICTIMS)], dice.uniform(0.0, took_s)
        shown = f"seed {seed}: {victim} killed after {after_s:.3f} s of {took_s:.1f}"
        print(shown)
        runner = Runner(tmp_path / f"killed{number}", LINGER_S)
        killed = runner.kill(victim, after_s)
        try:
            runner.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            runner.process.kill()
            runner.process.wait()
            pytest.fail(f"{shown}: the runner hangs\n{runner.said()}")
        assert runner.watch.left() == set(), f"{shown}\n{runner.said()}"
        if killed and victim != "runner":
            assert "Traceback" not in runner.said() or "HostError" in runner.said(), f"{shown}\n{runner.said()}"
            assert not (tmp_path / f"killed{number}" / "recording.fscost").exists(), shown
    run_whole(tmp_path, "after")


def test_ctrl_c(tmp_path: Path, vm_lab: VmLab) -> None:
    runner = Runner(tmp_path / "cell", LINGER_S)
    while "second" not in runner.said() and runner.process.poll() is None:
        runner.find("qemu-system-x86_64")
        time.sleep(0.02)
    runner.process.send_signal(signal.SIGINT)
    runner.process.wait(timeout=30)
    assert runner.watch.left() == set()
    assert not (tmp_path / "cell" / "recording.fscost").exists()
    assert "KeyboardInterrupt" in runner.said()
