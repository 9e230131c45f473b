"""One QEMU process: its machine, its monitor and its ports. It ends with the thread that started
it.

The machine (docs/vm.md) is a `pc` with one processor. Everything specific to a cell is plugged in
after the start, so that one snapshot serves all cells.
"""

import contextlib
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fscost.errors import HostError
from fscost.host import install_command, interrupts, tool
from fscost.lab.vm import confinement
from fscost.lab.vm.confinement import ENVIRONMENT, Confinement, Share
from fscost.lab.vm.qmp import Monitor

PROGRAM = "qemu-system-x86_64"
MEMORY_BYTES = 1 << 30
CONSOLE_BYTES = 16 << 10
"""Number of bytes kept from the end of the guest's console output."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
_KERNEL_WORDS = (
    "console=ttyS0 quiet panic=-1 norandmaps cryptomgr.notests mitigations=off random.trust_cpu=on"
    " rodata=off initcall_blacklist=jent_mod_init,trace_eval_init"
)
"""Kernel command line. Without `norandmaps`, the addresses of a program would depend on the timing
of earlier interrupts, and its run time on its addresses."""
_REASON = re.compile(
    r"Kernel panic|BUG:|Oops|Out of memory|general protection fault|invalid opcode|unable to"
    r" mount|I/O error|fscost-agent guest:"
)
_MOST_REASONS = 3
_LAST_LINES = 8
"""Console lines kept for an error; a panic ends in forty lines of registers and addresses."""
_DYING_S = 1.0
_KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NOW = "2037-01-01T00:00:00"
"""Start of the guest's clock: the same in every cell, and later than any file of the host. If
files were dated in the future, make would rebuild them, and relatime would update their access
times, again and again. It is before 2038, when the timestamps of ext3, jfs and reiserfs overflow."""


@dataclass(frozen=True)
class Accelerator:
    """Method of running a guest's instructions. `is_emulated`: the guest's clock counts one
    nanosecond per instruction, and says nothing about the time of a real machine."""

    name: str
    is_emulated: bool
    device: Path | None = None
    """Device node that QEMU opens."""

    @property
    def kernel_words(self) -> str:
        """Words of the guest kernel's command line."""
        # The last word is not for the kernel but for the agent (crates/agent/src/spinner.rs).
        return f"{_KERNEL_WORDS} never_idle" if self.is_emulated else _KERNEL_WORDS

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments of QEMU."""
        if self.is_emulated:
            # The guest's thread submits its requests itself (scheduling.py).
            at_once = (
                word
                for driver in ("blk", "9p", "serial")
                for word in ("-global", f"virtio-{driver}-pci.ioeventfd=off")
            )
            return ("-accel", "tcg", "-icount", "shift=0", "-cpu", "max", *at_once)
        return ("-accel", self.name, "-cpu", "host")


EMULATION = Accelerator("tcg", True)
KVM = Accelerator("kvm", False, Path("/dev/kvm"))


@dataclass(frozen=True)
class Machine:
    """Properties that a snapshot shares with the cells restored from it."""

    accelerator: Accelerator
    kernel: str
    initramfs: str

    def arguments(self) -> list[str]:
        """Arguments of QEMU, without ports and shares."""
        return [
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-sandbox", _SANDBOX),
            *("-machine", "pc", *self.accelerator.arguments),
            *("-smp", "1", "-m", f"size={MEMORY_BYTES}B"),
            *("-rtc", f"base={_NOW},clock=vm", "-seed", "7"),
            *("-kernel", self.kernel, "-initrd", self.initramfs),
            *("-append", self.accelerator.kernel_words),
        ]


@contextlib.contextmanager
def machine_of(
    accelerator: Accelerator, kernel: Path, initramfs: Path
) -> Iterator[tuple[Machine, tuple[int, ...]]]:
    """Yield the machine of two files, and the descriptors that QEMU inherits, because QEMU may open
    neither file itself."""
    with kernel.open("rb") as first, initramfs.open("rb") as second:
        descriptors = (first.fileno(), second.fileno())
        yield Machine(accelerator, *map(inherited, descriptors)), descriptors


def inherited(descriptor: int) -> str:
    """Path by which QEMU opens a file that it inherits (proc_pid_fd(5))."""
    return f"/proc/self/fd/{descriptor}"


def share_arguments(tag: str, folder: Path) -> list[str]:
    """QEMU arguments of a 9p share, which is plugged in later: a snapshot cannot contain a mounted
    share."""
    return [
        "-fsdev",
        f"local,id={tag},path={_escaped(folder)},security_model=none,readonly=on,multidevs=remap",
    ]


class KilledError(HostError):
    """A signal from outside ended QEMU, which says nothing about the guest, its snapshot or the
    host."""


class Running:
    """The machines that run now. An interrupt ends them from any thread, even one that hangs before
    its first greeting, and every machine that starts later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._machines: set[Qemu] = set()
        self.is_interrupted = False

    def interrupt(self) -> None:
        """Kill every machine."""
        with self._lock:
            self.is_interrupted = True
            for machine in self._machines:
                machine.kill()

    def add(self, machine: "Qemu") -> None:
        """Add a machine whose process has started."""
        with self._lock:
            self._machines.add(machine)
            if self.is_interrupted:
                machine.kill()

    def remove(self, machine: "Qemu") -> None:
        """Remove a machine that has ended."""
        with self._lock:
            self._machines.discard(machine)


class Qemu:
    """A running machine, ended when the block ends.

    `events` and `control` are the host's ends of the ports `fscost.events` and `fscost.control`.
    """

    def __init__(
        self,
        machine: Machine,
        confined: Confinement,
        shares: Sequence[Share] = (),
        descriptors: Sequence[int] = (),
        *more: str,
        running: Running | None = None,
    ) -> None:
        program = tool(PROGRAM)
        if program is None:
            raise HostError(f"{PROGRAM} is missing", f"`{install_command([PROGRAM])}`")
        self._console = _Tail(CONSOLE_BYTES)
        self._errors = _Tail(CONSOLE_BYTES)
        pairs = {name: socket.socketpair() for name in ("console", "events", "control", "monitor")}
        theirs = {name: pair[1].fileno() for name, pair in pairs.items()}
        command = [
            *confined.command(program, shares, machine.accelerator.device),
            *machine.arguments(),
            *more,
            *_ports(theirs),
        ]
        for share in shares:
            command += share_arguments(share.tag, confined.place(share))
        self._running = running or Running()
        with interrupts.held():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(*theirs.values(), *descriptors),
                env=ENVIRONMENT,
                # Ctrl-C in the terminal reaches only fscost. QEMU gets no session of its own,
                # because the scheduler would then group it apart from the disk server (autogroups,
                # sched(7)).
                process_group=0,
                cwd="/",
            )
            self._running.add(self)
        for _, end in pairs.values():
            end.close()
        self.events, self.control = pairs["events"][0], pairs["control"][0]
        with pairs["console"][0] as console:  # really closed with its reader
            self._console.follow(console.makefile("rb"))
        assert self._process.stderr is not None
        self._errors.follow(self._process.stderr)
        try:
            self.monitor = Monitor(pairs["monitor"][0])
        except BaseException as error:
            if isinstance(error, HostError):
                words = self.last_words() or error.what
                told = type(error)(
                    f"QEMU did not start: {words}",
                    "`fscost doctor` checks the requirements of the VM lab",
                )
                error = self.blamed(told)
            self.end()
            raise error from None

    def plug(self, driver: str, slot: int, **properties: Any) -> None:
        """Plug in a PCI device, in a slot that is the same in every cell."""
        # QMP preserves the types of properties; `device_add` has accepted JSON since 6.2.
        self.monitor.execute(
            "device_add", driver=driver, bus="pci.0", addr=f"{slot:#x}", **properties
        )

    @property
    def pid(self) -> int:
        """Process ID of QEMU."""
        return self._process.pid

    def guest_thread(self) -> int:
        """Return the ID of the thread that executes the guest's instructions."""
        thread: int = self.monitor.execute("query-cpus-fast")[0]["thread-id"]
        return thread

    def last_words(self) -> str:
        """Return QEMU's error output, the reasons for a crash of the guest's kernel, and the last
        console lines."""
        console = self._console.text().splitlines()
        reasons = [line for line in console if _REASON.search(line)][:_MOST_REASONS]
        last = [line for line in console[-_LAST_LINES:] if line not in reasons]
        return "\n".join(filter(None, (self._errors.text(), *reasons, *last)))

    def blamed(self, error: HostError) -> HostError:
        """Return `error`, or a KilledError if a signal from outside ended QEMU."""
        if not self.was_killed():
            return error
        return KilledError(
            f"QEMU was killed by {signal.Signals(-self._process.returncode).name} from outside"
        )

    def was_killed(self) -> bool:
        """True if a signal from outside ended QEMU. If it aborted or crashed on an invalid
        memory access, it failed by itself."""
        status = self.wait(_DYING_S)
        return status is not None and -status in _KILLS

    def wait(self, limit_s: float) -> int | None:
        """Wait for QEMU to end; return its exit status, or None if it still runs."""
        try:
            return self._process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill QEMU, from any thread; waiting threads then see it end."""
        if self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """End QEMU, by killing it if it still runs: none of its state is worth keeping."""
        self.kill()
        self._process.wait()  # no limit: a busy host may take long to free its memory
        self._running.remove(self)
        for stream in (self.events, self.control):
            with contextlib.suppress(OSError):
                stream.close()
        with contextlib.suppress(AttributeError):
            self.monitor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def version() -> str | None:
    """Return QEMU's version, such as `7.2.22`; None if QEMU is not installed. HostError if it is
    installed but gives no version, because snapshots are tied to a version."""
    program = tool(PROGRAM)
    if program is None:
        return None
    status, said, because = confinement.answer([str(program), "--version"])
    found = re.search(r"version (\S+)", said)
    if status == 0 and found is not None:
        return found[1]
    because = because or "it does not report its version"
    raise HostError(
        f"`{PROGRAM} --version` failed: {because}",
        f"install it again: `{install_command([PROGRAM])}`",
    )


def _ports(descriptors: dict[str, int]) -> list[str]:
    """Arguments for the console, the agent's two ports and the monitor, each on a descriptor, so
    that no socket lies in any folder."""
    ends = [f"socket,id={name},fd={number}" for name, number in descriptors.items()]
    return [
        *(word for end in ends for word in ("-chardev", end)),
        *("-serial", "chardev:console", "-mon", "chardev=monitor,mode=control"),
        *("-device", "virtio-serial-pci,bus=pci.0,addr=0x3"),
        *("-device", "virtserialport,chardev=events,name=fscost.events,nr=1"),
        *("-device", "virtserialport,chardev=control,name=fscost.control,nr=2"),
    ]


def _escaped(path: Path) -> str:
    """Double the commas in a path: QEMU separates options by commas, and reads a doubled comma as a
    literal one."""
    return str(path).replace(",", ",,")


class _Tail:
    """The end of a stream from another process, read continuously so that the writer never
    blocks."""

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._kept = bytearray()
        self._thread: threading.Thread | None = None

    def follow(self, stream: Any) -> None:
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the text with printable characters only, so that a guest's output cannot control
        the terminal."""
        if self._thread is not None:
            # If the writer has ended, the thread ends at once; otherwise use the text so far.
            self._thread.join(timeout=0.2)
        words = bytes(self._kept[-self._keep_bytes :]).decode("utf-8", "replace")
        return "".join(letter for letter in words if letter.isprintable() or letter == "\n").strip()

    def _read(self, stream: Any) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while part := stream.read1(1 << 12):
                self._kept += part
                del self._kept[: -self._keep_bytes]
