"""Abilities of a workload, tested by real attempts, natively and in a guest. This test checks the
table in docs/measuring.md."""

import ctypes
import platform
import re
import shlex
import shutil
import socket
import subprocess
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
    program = tmp_path / f"p{name[-12:]}"
    program.symlink_to(shutil.which("sleep") or "sleep")
    secret = subprocess.Popen([program, "1000"], env={"SECRET": name})
    queue = subprocess.run(
        ["ipcmk", "-Q"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as daemon,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        for listener, address in ((daemon, str(tmp_path / "daemon")), (abstract, f"\0{name}")):
            listener.bind(address)
            listener.listen()
        kept = {
            path: Path(path).read_bytes()
            for path in (
                "/proc/sys/kernel/hostname",
                "/proc/sys/kernel/core_pattern",
                "/proc/sys/kernel/pid_max",
            )
        }
        libc = ctypes.CDLL(None)
        key = libc.syscall(NUMBERS["key"], b"user", name.encode(), b"secret", 6, USER_KEYRING)
        yield Host(tmp_path, name, server.getsockname()[1], queue, kept)
        libc.syscall(NUMBERS["keyctl"], UNLINK, key, USER_KEYRING)
    secret.kill()
    secret.wait()
    subprocess.run(["ipcrm", "-q", queue], check=True)
    for folder in ("/etc", "/usr/bin", "/home", "/root", "/tmp", "/var/tmp", "/dev/shm"):
        Path(folder, name).unlink(missing_ok=True)


def python(code: str) -> str:
    # A guest sees the distribution's Python, but not one in /root.
    return f"{shutil.which('python3', path='/usr/bin') or 'python3'} -S -c {shlex.quote(code)}"


def has_capability(number: int) -> str:
    return f"test $(( 0x$(sed -n 's/^CapEff:\\t//p' /proc/self/status) >> {number} & 1 )) = 1"


WRITABLE = "write to a folder that --writable names"
LIMIT = "raise a limit of its own (setrlimit)"
NEVER_KILLED = "exempt itself from the out-of-memory killer"
SYS_RESOURCE = 24

NUMBERS = {"uring": 425} | {
    "x86_64": {"bpf": 321, "perf": 298, "key": 248, "keyctl": 250, "to": 303, "open": 304}
    | {"fault": 323},
    "aarch64": {"bpf": 280, "perf": 241, "key": 217, "keyctl": 219, "to": 264, "open": 265}
    | {"fault": 282},
}[platform.machine()]
"""Numbers of system calls (include/uapi/asm-generic/unistd.h, arch/x86/entry/syscalls)."""


def call(number: int, *words: str) -> str:
    """Return a shell line that makes a system call and succeeds if the call does."""
    return python(
        f"import ctypes as c; l = c.CDLL(None); b = c.create_string_buffer\n"
        f"raise SystemExit(l.syscall({', '.join([str(number), *words])}) < 0)"
    )


MAP = "struct.pack('<4I', 2, 4, 4, 1).ljust(128, bytes(1))"  # linux/bpf.h: an array of one
EVENT = "struct.pack('<2IQ', 1, 112, 0).ljust(112, bytes(1))"  # linux/perf_event.h: the CPU clock
USER_KEYRING = -4  # linux/keyctl.h
SEARCH, UNLINK = 10, 9


def kernel_calls(host: Host) -> dict[str, str]:
    """Return attempts that only the filter of system calls prevents (crates/agent)."""
    bpf, perf = (
        call(NUMBERS[name], *words).replace("import ctypes", "import struct, ctypes")
        for name, words in (
            ("bpf", ("0", MAP, "128")),
            ("perf", (EVENT, "0", "-1", "-1", "0")),
        )
    )
    by_handle = python(
        "import ctypes as c, os, struct\n"
        "l = c.CDLL(None, use_errno=True); open('by-handle', 'w').close()\n"
        "h = c.create_string_buffer(struct.pack('<Ii', 128, 0), 136); m = c.c_int()\n"
        f"assert l.syscall({NUMBERS['to']}, -100, b'by-handle', h, c.byref(m), 0) == 0\n"
        f"raise SystemExit(l.syscall({NUMBERS['open']}, os.open('.', 0), h, 0) < 0)"
    )
    return {
        "load a program or map into the kernel (bpf)": bpf,
        "observe the kernel (perf_event_open)": perf,
        "read a key of the host's user keyring": call(
            NUMBERS["keyctl"], str(SEARCH), str(USER_KEYRING), "b'user'", f"b'{host.name}'", "0"
        ),
        "add a key": call(
            NUMBERS["key"], "b'user'", "b'fscost-probe'", "b'x'", "1", str(USER_KEYRING)
        ),
        "swap on a file of the disk": (
            "dd if=/dev/zero of=swap bs=1M count=2 && chmod 600 swap && mkswap swap && swapon swap"
            " && swapoff swap"
        ),
        "run in real time": python(
            "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
        ),
        "run at another priority": python(
            "import os; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); os.nice(-1)"
        ),
        "open a file by its handle": by_handle,
        "use io_uring": call(NUMBERS["uring"], "1", "bytes(120)"),
        "handle its page faults (userfaultfd)": call(NUMBERS["fault"], "0"),
        LIMIT: "ulimit -n $(( $(ulimit -H -n) + 1 ))",
        NEVER_KILLED: "echo -1000 > /proc/self/oom_score_adj",
    }


def by_mount(type_: str, file: str) -> str:
    """Return a shell line that opens a file of a kernel's file system for writing."""
    return f"mkdir m; mount -t {type_} none m && ( exec 3>>m/{file} ); e=$?; umount m; exit $e"


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
        **{
            f"write to {folder}": f"echo x > {folder}/{host.name}"
            for folder in ("/usr/bin", "/home", "/root")
        },
        "see a process of the host": f"grep -qsx p{host.name[-12:]} /proc/[0-9]*/comm",
        "read the agent's memory": "exec 3< /proc/1/mem",
        "read the kernel's memory (/proc/kcore)": "exec 3< /proc/kcore",
        "read the machine's memory (/dev/mem)": "exec 3< /dev/mem",
        "see addresses of the kernel (/proc/kallsyms)": "head /proc/kallsyms | grep -qv ^0000000000",
        "read the kernel's log (/dev/kmsg)": "exec 3< /dev/kmsg",
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
        "reach a daemon of the host by an abstract socket": python(
            f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{host.name}')"
        ),
        "see System V queues of the host": f"ipcs -q -i {host.queue} | grep -q msqid",
        "load kernel modules": has_capability(16),
        "reboot": has_capability(22),
        "set the clock": has_capability(25),
        "trace the agent": has_capability(19),
        f"start {MOST_PROCESSES} processes or threads": many_threads,
        "make a user namespace": "unshare --user true",
        "change settings of the kernel, by mounting proc": by_mount(
            "proc", "sys/kernel/core_pattern"
        ),
        "change settings of devices, by mounting sysfs": by_mount("sysfs", "kernel/rcu_expedited"),
        "change control groups, by mounting cgroup2": by_mount("cgroup2", "cgroup.procs"),
        "trace the kernel, by mounting tracefs": by_mount("tracefs", "set_event"),
        "open the kernel's log by a node of its own making": "mknod log c 1 11 && exec 3>> log",
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
    everything = {
        **attempts(host, many_threads),
        **kernel_calls(host),
        **{name: shell for name, (shell, _) in effects(host).items()},
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
    expected = documented("native")
    if subprocess.run(["sh", "-c", has_capability(SYS_RESOURCE)], check=False).returncode:
        # A step has no capability that fscost lacks.
        expected |= {LIMIT: False, NEVER_KILLED: False}
    assert tried(bench, host, MANY_THREADS, writable=(writable(host),)) == expected


@pytest.mark.guest
def test_what_a_workload_can_do_in_a_guest(guests: Any, host: Host) -> None:
    assert tried(guests, host, "test $(cat /proc/sys/kernel/threads-max) -ge 8192") == documented(
        "guest"
    )
