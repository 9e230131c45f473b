"""Machines of a Ray cluster on this one: each in a network namespace of its own, with its own /run,
where the lock of a machine lies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 6379
_RAY = Path(sys.executable).parent / "ray"
_OPTIONS = ("--disable-usage-stats", "--object-store-memory=80000000", "--block")
_START_S = 120


@dataclass(frozen=True)
class Machine:
    """A machine, named by its network namespace. All machines share one subnet."""

    name: str
    ip: str

    def command(self, *words: str | Path) -> list[str | Path]:
        """Return the command that runs another on this machine."""
        own = 'mount -t tmpfs none /run && exec "$@"'
        inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", own, "sh"]
        return ["ip", "netns", "exec", self.name, *inside, *words]

    def kill(self) -> None:
        """End the machine as a power cut does."""
        pids = _ip("netns", "pids", self.name).split()
        for pid in map(int, pids):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@contextmanager
def machines(count: int, cpus: int = 1) -> Iterator[list[Machine]]:
    """Start `count` machines; the first is the head. They have ended when the block ends."""
    with ExitStack() as stack:
        prefix = f"fsr{os.getpid()}"
        _namespace(stack, f"{prefix}x")
        _ip("-n", f"{prefix}x", "link", "add", "br0", "type", "bridge")
        _ip("-n", f"{prefix}x", "link", "set", "br0", "up")
        found = [
            _machine(stack, f"{prefix}x", Machine(f"{prefix}{number}", f"10.99.0.{number}"))
            for number in range(1, count + 1)
        ]
        folder = tempfile.mkdtemp(prefix="fsr-")  # a short path, for sockets
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        head = ["--head", f"--port={PORT}", f"--temp-dir={folder}", "--include-dashboard=false"]
        joins = [f"--address={found[0].ip}:{PORT}"]
        for machine, role in zip(found, [head, *[joins] * (count - 1)], strict=True):
            _start(stack, machine, cpus, role, Path(folder, f"{machine.name}.log"))
        yield found


def _start(stack: ExitStack, machine: Machine, cpus: int, role: Sequence[str], log: Path) -> None:
    """Start a machine's part of Ray, and wait until it has joined."""
    own = [f"--node-name={machine.name}", f"--node-ip-address={machine.ip}", f"--num-cpus={cpus}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            machine.command(_RAY, "start", *role, *own, *_OPTIONS),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    stack.callback(process.wait)
    stack.callback(machine.kill)
    _until(lambda: "Ray runtime started" in log.read_text(), log)


def _until(is_there: Callable[[], bool], log: Path) -> None:
    import time

    until = time.monotonic() + _START_S
    while not is_there():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def _machine(stack: ExitStack, switch: str, machine: Machine) -> Machine:
    name = machine.name
    _namespace(stack, name)
    _ip("-n", switch, "link", "add", f"v{name}", "type", "veth", "peer", "eth0", "netns", name)
    _ip("-n", switch, "link", "set", f"v{name}", "master", "br0", "up")
    _ip("-n", name, "address", "add", f"{machine.ip}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        _ip("-n", name, "link", "set", link, "up")
    return machine


def _namespace(stack: ExitStack, name: str) -> None:
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "delete", name)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
