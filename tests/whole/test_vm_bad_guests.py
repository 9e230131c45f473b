"""A guest that panics, hangs, starves or dies is a failed cell with its kernel's messages, never a
hung run and never an exception."""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.lab.base import CellResult
from fscost.lab.vm import port
from fscost.workload.model import Step

from .conftest import restless

pytestmark = pytest.mark.guest

MIB = 1 << 20


def failed(result: CellResult, kind: str) -> str:
    assert (result.status, result.kind) == (
        "failed",
        kind,
    ), f"{result.status} ({result.kind}): {result.because}"
    assert result.samples == []
    assert result.recording is None
    assert children() == {}
    return result.because


def children() -> dict[int, str]:
    """Return our own child processes with their programs. Python processes are left out, because
    they may be servers of other tests."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        listed = ""
        with contextlib.suppress(FileNotFoundError):  # the thread has ended
            listed = (task / "children").read_text()
        for pid in listed.split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                found[int(pid)] = Path(words[0].decode()).name
    return {pid: program for pid, program in found.items() if not program.startswith("python")}


@contextlib.contextmanager
def once_working(bench: Any, act: Callable[[], None]) -> Iterator[None]:
    """Run `act` while the step `work` runs."""

    def wait() -> None:
        while "work" not in bench.begun and not ended.is_set():
            time.sleep(0.02)
        if not ended.is_set():
            act()

    ended = threading.Event()
    thread = threading.Thread(target=wait)
    bench.begun = []
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def signal_child(name: str, number: signal.Signals) -> None:
    [pid] = [pid for pid, program in children().items() if program == name]
    os.kill(pid, number)


def test_a_panic_is_told_in_the_kernels_words(guests: Any) -> None:
    because = failed(
        guests.run(
            guests.cell(
                "ext4",
                "mkdir {scratch}/p; mount -t proc proc {scratch}/p; echo c >"
                " {scratch}/p/sysrq-trigger; sleep 600",
            )
        ),
        "guest",
    )
    assert "Kernel panic - not syncing: sysrq triggered crash" in because


@pytest.mark.slow
def test_a_workload_that_eats_all_memory_is_killed_alone(guests: Any) -> None:
    result = guests.run(guests.cell("ext4", "exec tail /dev/zero"))
    failed(result, "workload")
    assert result.facts["failure"]["signal"] == signal.SIGKILL


def test_a_workload_that_does_not_end(guests: Any) -> None:
    because = failed(
        guests.run(guests.cell("ext4", Step("work", "sleep 600", timeout_s=1))), "timeout"
    )
    assert "exceeded 1 s" in because


def test_a_guest_that_goes_on_for_ever(guests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock jumps once the cell is in its step; before that, a failure would first rebuild the
    # snapshot.
    jumps_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + jumps_s[-1])
    monkeypatch.setattr("fscost.lab.cell.lines.time", clock)
    with once_working(guests, lambda: jumps_s.append(1e9)):
        because = failed(
            guests.run(guests.cell("ext4", Step("work", "sleep 60000", timeout_s=60000))), "guest"
        )
    assert "it exceeded the time limits of its steps" in because


BARE = "mkdir -p /tmp/bare && mount --bind / /tmp/bare"
"""Command that exposes the host's root share without the guest's mounts over it (docs/vm.md)."""


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Words that a guest must not learn, each with the command that tries to read it."""
    at_home = Path.home() / f".secret-{os.getpid()}"
    at_home.write_text("secret-of-home")
    at_home.chmod(0o600)
    in_tmp = Path(f"/tmp/secret-{os.getpid()}")
    in_tmp.write_text("secret-of-tmp")
    in_tmp.chmod(0o600)
    environment = {"FSCOST_SECRET": "secret-of-environment", "PATH": os.environ["PATH"]}
    process = subprocess.Popen(["sleep", "600"], env=environment)
    monkeypatch.setenv("FSCOST_SECRET", "secret-of-fscost")  # what QEMU would inherit
    try:
        yield {
            "secret-of-home": f"cat /tmp/bare{at_home}",
            "secret-of-environment": f"cat /tmp/bare/proc/{process.pid}/environ",
            "secret-of-fscost": "cat /tmp/bare/proc/self/environ /tmp/bare/proc/*/environ",
            # Other users' files are hidden only from root's guests: an unprivileged user's QEMU
            # runs as that user.
            **({"secret-of-tmp": f"cat /tmp/bare{in_tmp}"} if os.geteuid() == 0 else {}),
        }
    finally:
        at_home.unlink()
        in_tmp.unlink()
        process.kill()
        process.wait()


def test_a_guest_that_wants_out(guests: Any, secrets: dict[str, str], tmp_path: Path) -> None:
    """A guest's root sees no process, home, secret or network of the host, and writes nothing to
    it."""
    kept = tmp_path / "input"
    kept.mkdir()
    (kept / "file").write_text("ours")
    (kept / "file").chmod(0o600)
    folders = ("proc", "sys", "dev", "run", "root", "home")
    lines = [
        BARE,
        *(f"echo in {name}: $(ls -A /tmp/bare/{name} | tr '\\n' ' ')" for name in folders),
        *secrets.values(),
        "cat /tmp/bare/etc/shadow && echo shadow was read",
        (
            "for place in / /etc /tmp /var/tmp /root /home /run; do echo theirs >"
            " /tmp/bare/$place/theirs && echo wrote $place; done"
        ),
        "mknod /tmp/bare/tmp/node b 8 0 && echo made a node",
        (
            "mount -o remount,rw {input}; echo theirs > {input}/file; echo theirs > {input}/new;"
            " echo input: $(cat {input}/file)"
        ),
        "cat /sys/bus/pci/devices/*/class; sleep 1; true",
    ]
    seen: dict[str, dict[str, str]] = {}
    roots: list[set[str]] = []

    def look() -> None:
        for pid, program in children().items():
            status = Path(f"/proc/{pid}/status").read_text().splitlines()
            seen[program] = {
                line.split(":")[0]: line.split()[1] for line in status if len(line.split()) > 1
            }
            if program == "qemu-system-x86_64":
                assert b"FSCOST_SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()
                roots.append(
                    {name for name in folders if any(Path(f"/proc/{pid}/root/{name}").iterdir())}
                )

    with once_working(guests, look):
        result = guests.done(guests.cell("ext4", "; ".join(lines), input=kept))
    said = result.output.read_text()
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"file": "ours"}
    assert "input: ours" in said, "root's own file, which the user that QEMU runs as may not read"
    assert result.facts["guest"]["confinement"]["is_hidden"], (
        "no user namespaces for ordinary users here"
    )
    for name in folders:
        # Only the folder that the tests work in may be visible there.
        [shown] = [
            line.partition(": ")[2].split()
            for line in said.splitlines()
            if line.startswith(f"in {name}:")
        ] or [[]]
        here = Path.cwd().parts
        assert shown == ([here[2]] if here[1] == name else []), said
    for secret in secrets:
        assert secret not in said
    for claim in ("shadow was read", "wrote /", "made a node"):
        assert claim not in said
    assert re.findall(r"^0x01(?=....$)", said, re.MULTILINE), "its disk"
    assert not re.findall(r"^0x02(?=....$)", said, re.MULTILINE), "a network device"
    assert roots == [{"proc", "dev", "run"}], "QEMU's own: its descriptors, two nodes, the shares"
    machine, server = seen["qemu-system-x86_64"], seen["fscost-disk"]
    assert machine["Seccomp"] == "2", "filtered (proc(5))"
    assert machine["NoNewPrivs"] == "1"
    for status in (machine, server):
        assert int(status["CapEff"], 16) == 0
        assert status["Uid"] != "0", "not even for root"


def test_what_is_told_of_a_guest_is_what_it_is(guests: Any) -> None:
    result = guests.done(guests.cell("ext4", "uname -r"))
    told = result.facts["guest"]
    assert told["kernel"] in result.output.read_text().splitlines()
    assert (told["accelerator"], told["is_emulated"]) in (("tcg", True), ("kvm", False))
    [unit] = {sample.unit for sample in result.samples if sample.metric == "wall_s"}
    assert unit == ("virtual_s" if told["is_emulated"] else "s")
    assert "cpu_disk_server_s" not in {sample.metric for sample in result.samples}, (
        "it works outside of the guest"
    )


def test_a_guest_that_hangs(guests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence ends at once, but only after the machine was stopped: before the step, a failure
    would first rebuild the snapshot."""
    is_stopped = threading.Event()

    class Impatient(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            assert timeout is not None
            end = time.monotonic() + timeout
            while not (found := super().select(0.5)) and not is_stopped.is_set():
                if time.monotonic() > end:
                    break
            return found

    def stop() -> None:
        signal_child("qemu-system-x86_64", signal.SIGSTOP)
        is_stopped.set()

    module = SimpleNamespace(DefaultSelector=Impatient, EVENT_READ=selectors.EVENT_READ)
    monkeypatch.setattr("fscost.lab.cell.lines.selectors", module)
    with once_working(guests, stop):
        because = failed(guests.run(guests.cell("ext4", "sleep 600")), "guest")
    assert f"silent for {port.SILENCE_S} s" in because


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        ("qemu-system-x86_64", "guest", "ended with status -9"),
        ("fscost-disk", "disk-server", "the disk server ended"),
    ],
)
def test_a_program_of_ours_is_killed(guests: Any, program: str, kind: str, words: str) -> None:
    with once_working(guests, lambda: signal_child(program, signal.SIGKILL)):
        because = failed(
            guests.run(guests.cell("ext4", "while true; do echo x > file; sync -f .; done")), kind
        )
    assert words in because


def test_a_disk_that_never_rests(guests: Any) -> None:
    assert "background I/O is still running" in failed(
        guests.run(restless(guests.cell("ext4", "true"))), "left-running"
    )


def test_a_failing_workload_keeps_its_output(guests: Any) -> None:
    result = guests.run(guests.cell("ext4", "echo all is lost >&2; exit 3"))
    failed(result, "workload")
    assert result.facts["failure"]["status"] == 3
    assert "all is lost" in result.output.read_text()


@pytest.mark.root
def test_the_hosts_disk_is_full(guests: Any, small_disk: Callable[[str], Path]) -> None:
    tiny = small_disk("24m")
    because = failed(
        guests.run(
            guests.cell("ext4", "head -c 60000000 /dev/urandom > file; sync -f ."),
            cell_dir=tiny / "cell",
        ),
        "host-disk-full",
    )
    assert "space" in because
    assert not list(tiny.rglob("*.fscost"))
