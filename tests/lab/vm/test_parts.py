"""Parts of the VM lab that need no guest: its self-description, and the bounds on untrusted
output."""

import io
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost import host, profile
from fscost.errors import HostError
from fscost.files import cache
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import Binaries, find_binaries
from fscost.lab.cell.events import Alive, Bye, Output, ProtocolError
from fscost.lab.vm import accelerator, confinement, disks, kernels, lab, nbd, qemu, snapshot
from fscost.lab.vm.checks import checks
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.lab import VmLab
from fscost.matrix import Cell
from fscost.profile import resolve
from fscost.workload.model import Step, Workload

CONFINEMENT = Confinement(find_binaries().agent)
KERNEL = GuestKernel(
    "6.12.9-test",
    Path("/cache/vmlinux"),
    Path("/cache/modules"),
    "linux-image-6.12.9-test 6.12.9-1",
)


@pytest.mark.parametrize(
    ("version", "kernel", "because"),
    [("7.2", KERNEL, None), ("7.2", KERNEL, "it hangs"), (None, None, None)],
)
def test_doctor_says_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    kernel: GuestKernel | None,
    because: str | None,
) -> None:
    monkeypatch.setattr(qemu, "version", lambda: version)
    monkeypatch.setattr(kernels, "cached", lambda _: kernel)
    monkeypatch.setattr(kernels, "names", lambda: ["6.12", "7.3"])
    monkeypatch.setattr(accelerator, "kvm_unusable_reason", lambda *_: because)
    monkeypatch.setattr(
        confinement, "choose", lambda agent, _: Confinement(agent, (65534, 65534), True)
    )
    first, view, *of_kernels, kvm = checks(Path("/agent"))
    assert view.ok == (version is not None)
    assert (first.ok, first.required) == (version is not None, True)
    assert [check.ok for check in of_kernels] == [kernel is not None] * 2
    assert kvm.ok == (kernel is not None and because is None)
    if kernel is None:
        assert all("doctor --fetch" in str(check.remedy) for check in of_kernels)
        assert "install" in str(first.remedy)
        assert kvm.detail.startswith("not checked")
    else:
        assert [check.detail for check in of_kernels] == [
            "Linux 6.12.9-test (linux-image-6.12.9-test 6.12.9-1), /cache"
        ] * 2
        assert kvm.detail == (because or "guests run under it")
    assert checks(None)[-1].detail.startswith("not checked")


def test_doctor_says_why_a_guest_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise HostError("`qemu-system-x86_64 --version` failed: no library", "install it again")

    monkeypatch.setattr(qemu, "version", broken)
    [first, *_] = checks(Path("/agent"))
    assert (first.ok, first.required, first.detail) == (
        False,
        True,
        "`qemu-system-x86_64 --version` failed: no library",
    )


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> VmLab:
    return lab_on(64, monkeypatch)


def lab_on(processors: int, monkeypatch: pytest.MonkeyPatch) -> VmLab:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    made = VmLab(Binaries(Path("/agent"), Path("/disk")))
    monkeypatch.setattr(made.guests, "_accelerator", qemu.EMULATION)
    return made


def test_as_many_guests_as_memory_and_cores_hold(
    emulated: VmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = qemu.MEMORY_BYTES + (512 << 20)
    for free, guests in ((100 * each, 4), (3 * each, 3), (each // 2, 1)):
        monkeypatch.setattr(host, "memory_bytes", lambda _, free=free: free)
        assert emulated.side_by_side == guests
    monkeypatch.setattr(host, "memory_bytes", lambda _: 100 * each)
    assert lab_on(2, monkeypatch).side_by_side == 2
    monkeypatch.setattr(emulated.guests, "_accelerator", qemu.KVM)
    assert emulated.side_by_side == 1, "they share the host's time"


def test_why_no_guest_runs(emulated: VmLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "version", lambda: "7.2")
    monkeypatch.setattr(host, "memory_bytes", lambda _: 8 << 30)
    assert emulated.unavailable_reason() is None
    monkeypatch.setattr(host, "memory_bytes", lambda _: 1 << 30)
    assert "1536 MiB of memory" in str(emulated.unavailable_reason())
    monkeypatch.setattr(qemu, "version", lambda: None)
    assert "is missing" in str(emulated.unavailable_reason())
    monkeypatch.setattr(
        os, "uname", lambda: os.uname_result(("Linux", "here", "6.12", "#1", "aarch64"))
    )
    assert "aarch64" in str(emulated.unavailable_reason())


def test_more_disks_than_a_guest_has_room_for(emulated: VmLab) -> None:
    found = profile.resolve("btrfs")
    many = replace(
        found,
        disks=tuple(
            replace(found.disks[0], name=f"d{number}") for number in range(disks.MAX_DISKS + 1)
        ),
    )
    cell = Cell(
        many, Workload("mine", (Step("work", "true"),), disk_bytes=1), repetition=0, seed=1, order=0
    )
    assert f"a guest has room for {disks.MAX_DISKS}" in str(emulated.unsupported_reason(cell))


def test_what_a_kernel_lacks_is_the_reason(
    emulated: VmLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules.builtin").write_text(
        "kernel/fs/ext4/ext4.ko\nkernel/drivers/md/raid1.ko\n"
    )
    monkeypatch.setitem(
        emulated.guests._kernels,
        kernels.DEFAULT,
        GuestKernel("9.9", tmp_path / "vmlinux", tmp_path),
    )
    workload = Workload("mine", (Step("work", "true"),), disk_bytes=1 << 30)

    def because(spelled: str) -> str | None:
        return emulated.unsupported_reason(
            Cell(profile.resolve(spelled), workload, repetition=0, seed=1, order=0)
        )

    assert because("ext4") is None
    assert because("ext3") is None
    assert because("xfs") == "Linux 9.9 has no xfs; name another guest kernel with --kernel"
    assert (
        because("ext4 on md -l 5 -n 3")
        == "Linux 9.9 has no md level 5; name another guest kernel with --kernel"
    )


def test_one_image_with_other_modules_is_another_kernel(
    emulated: VmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []
    monkeypatch.setattr(
        snapshot,
        "take",
        lambda kernel, *_: taken.append(kernel.modules) or SimpleNamespace(folder=kernel.modules),
    )
    monkeypatch.setattr(emulated.guests, "_confinement", CONFINEMENT)
    cells = []
    for name in ("/a/vmlinuz", "/b/vmlinuz"):
        monkeypatch.setitem(
            emulated.guests._kernels, name, replace(KERNEL, modules=Path(name).parent)
        )
        found = replace(profile.resolve("ext4"), kernel=name)
        cells.append(
            Cell(
                found,
                Workload("mine", (Step("work", "true"),), disk_bytes=1),
                repetition=0,
                seed=1,
                order=0,
            )
        )
    assert [emulated.guests.snapshot(cell.profile.kernel).folder for cell in (*cells, *cells)] == [
        Path("/a"),
        Path("/b"),
    ] * 2
    assert taken == [Path("/a"), Path("/b")]


def test_the_manifest_says_what_guests_are(
    emulated: VmLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / cache.COMPLETE).write_text('{"vmlinux": "5eaf00d"}')
    kernel = replace(KERNEL, vmlinux=tmp_path / "vmlinux")
    own = replace(kernel, version="6.1.9-test", package=None)
    monkeypatch.setattr(qemu, "version", lambda: "7.2")
    monkeypatch.setitem(emulated.guests._kernels, kernels.DEFAULT, kernel)
    monkeypatch.setitem(emulated.guests._kernels, "6.1", own)
    found = profile.resolve("ext4")
    told = emulated.environment([found, replace(found, kernel="6.1")])["guest"]
    versions = {kernels.DEFAULT: "6.12.9-test", "6.1": "6.1.9-test"}
    assert told == {
        "kernels": versions,
        "builds": {
            kernels.DEFAULT: {"package": KERNEL.package, "vmlinux_sha256": "5eaf00d"},
            "6.1": {"package": None, "vmlinux_sha256": "5eaf00d"},
        },
        "accelerator": "tcg",
        "qemu": "7.2",
        "memory_bytes": 1 << 30,
    }


class Said:
    """A port that has received these events."""

    def __init__(self, *events: Any) -> None:
        self._events = events

    def events(self, _: float) -> Iterator[Any]:
        yield from self._events


def test_a_guest_is_heard_to_its_last_word_and_no_longer() -> None:
    heard: list[Any] = []
    output = io.BytesIO()
    lab._listen(Said(Alive(), Output("a"), "mark", Bye(), "late"), 1, heard.append, output)  # type: ignore[arg-type]
    assert (heard, output.getvalue()) == (["mark"], b"a")


@pytest.mark.parametrize(
    ("limit", "event", "words"),
    [("MAX_OUTPUT_BYTES", Output("x" * 100), "printed more"), ("MAX_EVENTS", "mark", "events")],
)
def test_a_guest_that_says_too_much(
    monkeypatch: pytest.MonkeyPatch, limit: str, event: Any, words: str
) -> None:
    monkeypatch.setattr(lab, limit, 10)
    with pytest.raises(ProtocolError, match=words):
        lab._listen(Said(*[event] * 11), 1, lambda _: None, io.BytesIO())  # type: ignore[arg-type]


def test_a_console_is_kept_to_its_end_and_printable() -> None:
    tail = qemu._Tail(100)
    tail.follow(io.BufferedReader(io.BytesIO(b"x" * 100_000 + b"\x1b[2J\x07panic\r\n\xff at last")))  # type: ignore[arg-type]
    assert tail._thread is not None
    tail._thread.join(60)
    assert tail.text().endswith("[2Jpanic\n\ufffd at last")
    assert len(tail._kept) == 100


def test_what_qemu_complains_of_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho no such option >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(qemu, "tool", lambda _: program)
    with pytest.raises(HostError, match="QEMU did not start: no such option"):
        qemu.Qemu(qemu.Machine(qemu.EMULATION, "/k", "/i"), CONFINEMENT)


def test_a_qemu_that_is_killed_is_told_from_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu"
    monkeypatch.setattr(qemu, "tool", lambda _: program)
    for signal, expected in (("KILL", qemu.KilledError), ("ABRT", HostError)):
        program.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
        program.chmod(0o755)
        with pytest.raises(HostError) as raised:
            qemu.Qemu(qemu.Machine(qemu.EMULATION, "/k", "/i"), CONFINEMENT)
        assert type(raised.value) is expected


def test_an_interrupt_ends_a_qemu_that_hangs_before_its_greeting(
    emulated: VmLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, started = tmp_path / "qemu", tmp_path / "started"
    os.mkfifo(started)
    program.write_text(f"#!/bin/sh\necho >{started}; exec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(qemu, "tool", lambda _: program)

    def start() -> None:
        machine = qemu.Machine(qemu.EMULATION, "/k", "/i")
        qemu.Qemu(machine, CONFINEMENT, running=emulated.guests.running)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(start)
        started.read_bytes()
        emulated.interrupt()
        # Far less than the monitor's own limit.
        with pytest.raises(qemu.KilledError):
            first.result(60)
    with pytest.raises(qemu.KilledError):
        start()


def test_a_qemu_without_a_version_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accepted QEMU without a version would silently get a separate snapshot."""
    program = tmp_path / "qemu"
    monkeypatch.setattr(qemu, "tool", lambda _: program)
    program.write_text("#!/bin/sh\necho cannot load a library >&2; exit 127\n")
    program.chmod(0o755)
    with pytest.raises(HostError, match="version` failed: cannot load a library"):
        qemu.version()
    monkeypatch.setattr(qemu, "tool", lambda _: None)
    assert qemu.version() is None


def test_commas_in_paths() -> None:
    assert "path=/a,,b" in qemu.share_arguments("input", Path("/a,b"))[1]


@pytest.mark.parametrize(
    ("script", "words"),
    [("", "it ended"), ("import os, sys; os.write(int(sys.argv[4]), b'nonsense')", "nonsense")],
)
def test_a_disk_server_that_does_not_start(tmp_path: Path, script: str, words: str) -> None:
    with (
        disks.DiskServer([sys.executable, "-c", script], tmp_path / "errors") as server,
        pytest.raises(HostError, match=f"did not start: {words}"),
    ):
        server.wait_ready()


def test_a_disk_server_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "ANSWER_S", 0.1)
    hangs = [sys.executable, "-c", "import time; time.sleep(600)"]
    with disks.DiskServer(hangs, tmp_path / "errors") as server:
        for question in (
            server.wait_ready,
            server.heard_ready,
            lambda: server.ask({"finish": {}}),
        ):
            with pytest.raises(disks.ServerError, match=r"did not answer for 0\.1 s"):
                question()


def test_a_disk_server_that_hangs_while_it_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "ANSWER_S", 0.1)
    with socket.socket(socket.AF_UNIX) as server, Path("/dev/null").open("rb") as image:
        server.bind("")  # an abstract name that the kernel chooses (unix(7))
        server.listen()
        name = server.getsockname()[1:].decode()
        with pytest.raises(disks.ServerError, match=r"did not answer for 0\.1 s"):
            nbd.fill(name, "main", image.fileno())


@pytest.mark.parametrize("question", [disks.DiskServer.check, disks.DiskServer.check_killed])
def test_a_disk_server_that_takes_long_to_die_is_found_dead(
    tmp_path: Path,
    question: Callable[[disks.DiskServer], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server's files are closed, which QEMU and the guest notice at once, well before its exit
    status is available."""
    monkeypatch.setattr(disks, "_DYING_S", 120)  # which Python needs to start on a busy host, too
    script = (
        "import os, signal, time; os.closerange(3, 99); time.sleep(1); os.kill(os.getpid(),"
        " signal.SIGKILL)"
    )
    with (
        disks.DiskServer([sys.executable, "-c", script], tmp_path / "errors") as server,
        pytest.raises(disks.ServerError, match="status -9"),
    ):
        question(server)


def test_a_panic_is_told_by_its_reason_first() -> None:
    """The message of a panic comes first, not the registers that fill the end of a console."""
    machine = object.__new__(qemu.Qemu)
    machine._errors, machine._console = qemu._Tail(100), qemu._Tail(qemu.CONSOLE_BYTES)
    registers = "\n".join(f"R{number}: 0000000000000000" for number in range(60))
    machine._console._kept += (
        f"quiet\nKernel panic - not syncing: no init\n{registers}\n---[ end ]---".encode()
    )
    first, *rest = machine.last_words().splitlines()
    assert first == "Kernel panic - not syncing: no init"
    assert len(rest) == 8
    assert rest[-1] == "---[ end ]---"


def test_xfs_has_the_uuid_of_its_seed_in_guests(emulated: VmLab) -> None:
    def mkfs(spelled: str, seed: int) -> tuple[str, ...]:
        cell = Cell(
            profile.resolve(spelled),
            Workload("mine", (Step("work", "true"),), disk_bytes=1),
            repetition=0,
            seed=seed,
            order=0,
        )
        [command] = emulated._formatted(
            cell, LabOptions(Path("/nowhere"), disk_size_bytes=1 << 30)
        ).mkfs
        return command

    assert mkfs("xfs", 1) == mkfs("xfs", 1) != mkfs("xfs", 2)
    assert sum("uuid=" in word for word in mkfs("xfs", 1)) == 1
    assert mkfs("xfs -m uuid=00000000-0000-0000-0000-000000000001", 1).count("-m") == 1
    assert not any("uuid=" in word for word in mkfs("ext4", 1))


def test_a_program_that_only_the_caller_finds_is_told_before(
    emulated: VmLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fscost-own-tool").write_text("#!/bin/sh\n")
    (tmp_path / "fscost-own-tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    work = Workload("mine", (Step("run", "true"),), needs_tools=("fscost-own-tool",))
    because = emulated.unsupported_reason(Cell(resolve("ext2"), work, 0, 0, 0), 1 << 30)
    assert because is not None
    assert "mine needs fscost-own-tool, and guests search programs in /usr/local/sbin:" in because


def test_an_emulated_guest_takes_no_modelled_disk(emulated: VmLab) -> None:
    spelled = resolve("ext4 --disk main=hdd-7200")
    cell = Cell(spelled, Workload("w", (Step("run", "true"),)), 0, 0, 0)
    because = emulated.unsupported_reason(cell, 1 << 30)
    assert because is not None
    assert "hdd-7200" in because
    assert "cannot wait for a disk" in because
    assert "--lab native" in because


def test_guests_see_the_code_of_fscost_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The workloads of `fscost crash` are programs of it."""
    monkeypatch.chdir(tmp_path)
    shown = []
    for place in (tmp_path / "home/one/fscost", tmp_path / "usr/lib/fscost"):
        monkeypatch.setattr(confinement, "_HIDDEN", (tmp_path / "home",))
        monkeypatch.setattr(confinement, "_working_directory", tuple)
        monkeypatch.setattr("fscost.__file__", str(place / "__init__.py"))
        shown.append(confinement.choose(Path("/bin/true"), "true").shown)
    assert shown == [(tmp_path / "home/one/fscost",), ()]
