"""Abilities of a workload, tested by real attempts, natively and in a guest. This test checks the
table in docs/measuring.md."""

import os
import re
import shlex
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.loop_devices import attached_file

from fscost.workload.model import Step

DOCUMENT = Path(__file__).parents[2] / "docs" / "measuring.md"
MOST_PROCESSES = 8192  # crates/agent/src/sandbox.rs


@dataclass
class Host:
    """Objects of this machine that a workload may try to reach."""

    folder: Path
    name: str
    port: int
    queue: str
    kept: dict[str, bytes]
    disk: str = "*"
    """Device that a workload may try to read by a node of its own making. Where it can, only this
    one, because another test may watch who opens its own."""

    def left(self, folder: str) -> bool:
        return Path(folder, self.name).exists()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    name = f"fscost-probe-{uuid.uuid4().hex}"
    monkeypatch.setenv("TOKEN_OF_FSCOST", name)
    secret = subprocess.Popen(["sleep", "1000"], env={"SECRET": name})
    queue = subprocess.run(
        ["ipcmk", "-Q"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "daemon"))
        daemon.listen()
        kept = {
            path: Path(path).read_bytes()
            for path in (
                "/proc/sys/kernel/hostname",
                "/proc/sys/kernel/core_pattern",
                "/proc/sys/kernel/pid_max",
            )
        }
        yield Host(tmp_path, name, server.getsockname()[1], queue, kept)
    secret.kill()
    secret.wait()
    subprocess.run(["ipcrm", "-q", queue], check=True)
    for folder in ("/etc", "/root", "/tmp", "/var/tmp", "/dev/shm"):
        Path(folder, name).unlink(missing_ok=True)


def python(code: str) -> str:
    return (
        f"{shlex.quote(sys.executable if os.access(sys.executable, os.X_OK) else 'python3')} -S -c"
        f" {shlex.quote(code)}"
    )


def has_capability(number: int) -> str:
    return f"test $(( 0x$(sed -n 's/^CapEff:\\t//p' /proc/self/status) >> {number} & 1 )) = 1"


WRITABLE = "write to a folder that --writable names"

MANY_THREADS = python(f"""
import os, threading
threading.stack_size(32768)
end = threading.Event()
try:
    for _ in range({MOST_PROCESSES}):
        threading.Thread(target=end.wait, daemon=True).start()
except RuntimeError:
    os._exit(1)
os._exit(0)
""")


def other_disk(open_: str, devices: str = "*") -> str:
    """Return a shell line that runs `open_` for each of these block devices except the cell's,
    until one has a readable sector. $n is the device's node, and $d its folder in sysfs."""
    look = f'( {open_} ) && dd if="$n" bs=512 count=1 | wc -c | grep -qx 512 && exit 0'
    return (
        f"own=$(readlink -f {{disk.main}}); for d in /sys/class/block/{devices};"
        " do n=/dev/${d##*/}; ["
        f' "$n" = "$own" ] || {{ {look}; }}; done; exit 1'
    )


def attempts(host: Host, many_threads: str) -> dict[str, str]:
    """Return the attempts as name → shell; an attempt succeeds if its shell does. Writes that may
    have no effect are left to `effects`."""
    unix = f"import socket; socket.socket(socket.AF_UNIX).connect({str(host.folder / 'daemon')!r})"
    return {
        "write to /etc": f"echo x > /etc/{host.name}",
        "write to /root": f"echo x > /root/{host.name}",
        "read the environment of a process of the host": (
            f"grep -qs SECRET={host.name} /proc/[0-9]*/environ /proc/1/fd/*/[0-9]*/environ"
        ),
        "read the environment of fscost": f"grep -qs TOKEN_OF_FSCOST={host.name} /proc/1/environ",
        "join the host's mount namespace": (
            "for f in /proc/1/fd/*; do nsenter --mount=$f/1/ns/mnt true && exit 0; done; exit 1"
        ),
        "open a descriptor of the agent": (
            "for f in /proc/1/fd/*; do exec 3<$f && exit 0; done; exit 1"
        ),
        "open a disk of the host by its node": other_disk("true"),
        "write to the kernel's log": "echo fscost-probe > /dev/kmsg",
        "change a kernel setting (core_pattern)": (
            'v=$(cat /proc/sys/kernel/core_pattern) && echo "$v" > /proc/sys/kernel/core_pattern'
        ),
        "trigger sysrq": "exec 3> /proc/sysrq-trigger",
        "write to /sys": "exec 3> /sys/power/state",
        "reach a port of the host": f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{host.port}'",
        "reach a daemon of the host by its socket in /tmp": python(unix),
        "see System V queues of the host": f"ipcs -q -i {host.queue} | grep -q msqid",
        "load kernel modules": has_capability(16),
        "reboot": has_capability(22),
        "set the clock": has_capability(25),
        "trace the agent": has_capability(19),
        f"start {MOST_PROCESSES} processes or threads": many_threads,
        "open a disk of the host by a node of its own making": (
            other_disk('mknod made b $(tr : " " <$d/dev)', host.disk)
            .replace('if="$n"', "if=made")
            .replace("exit 0;", "exit 0; rm -f made;")
        ),
        "make the host's files writable again, by mount": (
            "mount -o remount,bind,rw / && exec 3>>/etc/hostname"
        ),
    }


def effects(host: Host) -> dict[str, tuple[str, Callable[[], bool]]]:
    """Return attempts whose shell may succeed, each with a check whether the host was affected."""
    found: dict[str, tuple[str, Callable[[], bool]]] = {
        f"leave a file in the host's {folder}": (
            f"echo x > {folder}/{host.name}",
            lambda folder=folder: host.left(folder),
        )  # type: ignore[misc]
        for folder in ("/tmp", "/var/tmp", "/dev/shm")
    }
    found[WRITABLE] = (f"echo x > {writable(host)}/file", (writable(host) / "file").exists)
    found["change the host's name"] = (
        "hostname fscost-probe",
        lambda: (
            Path("/proc/sys/kernel/hostname").read_bytes() != host.kept["/proc/sys/kernel/hostname"]
        ),
    )
    return found


def writable(host: Host) -> Path:
    return host.folder / "writable"


def tried(bench: Any, host: Host, many_threads: str, **options: Any) -> dict[str, bool]:
    """Return for each attempt whether it succeeded."""
    writable(host).mkdir()
    everything = attempts(host, many_threads) | {
        name: shell for name, (shell, _) in effects(host).items()
    }
    lines = [
        f"( {shell} ) >/dev/null 2>&1 && echo 'TRIED {number} yes' || echo 'TRIED {number} no'"
        for number, shell in enumerate(everything.values())
    ]
    result = bench.done(bench.cell("ext4", Step("work", "\n".join(lines))), **options)
    said = dict(re.findall(r"^TRIED (\d+) (yes|no)$", result.output.read_text(), re.MULTILINE))
    assert len(said) == len(everything)
    found = {name: said[str(number)] == "yes" for number, name in enumerate(everything)}
    for name, (_, happened) in effects(host).items():
        # A guest cannot even see root's private folder.
        assert found[name] or (name == WRITABLE and not options), f"{name}: it must be able to try"
        found[name] = happened()
    assert {path: Path(path).read_bytes() for path in host.kept} == host.kept
    return found


def documented(lab: str) -> dict[str, bool]:
    """Return the lab's column of the table in docs/measuring.md."""
    rows = re.findall(
        r"^\| ([^|]+?) \| (yes|no) \| (yes|no) \|$", DOCUMENT.read_text(), re.MULTILINE
    )
    return {name: (native if lab == "native" else guest) == "yes" for name, native, guest in rows}


@pytest.fixture
def disk_of_the_host(tmp_path: Path) -> Iterator[Path]:
    """A disk of the host that exists on any machine."""
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with attached_file(image) as node:
        yield node


@pytest.mark.root
def test_what_a_workload_can_do_natively(bench: Any, host: Host, disk_of_the_host: Path) -> None:
    host.disk = disk_of_the_host.name
    assert tried(bench, host, MANY_THREADS, writable=(writable(host),)) == documented("native")


@pytest.mark.guest
def test_what_a_workload_can_do_in_a_guest(guests: Any, host: Host) -> None:
    assert tried(guests, host, "test $(cat /proc/sys/kernel/threads-max) -ge 8192") == documented(
        "guest"
    )
