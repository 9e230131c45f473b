"""A guest of Debian's 6.12 in which fscost's own programs run, because this machine's kernel may
lack ublk_drv. It is emulated, and so slow; the userland is the host's, read-only."""

import contextlib
import itertools
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscost.lab.vm import kernels
from fscost.lab.vm.initramfs import Initramfs
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.modules import Modules
from fscost.lab.vm.qemu import PROGRAM

MODULES = (
    *("virtio_pci", "crc32c_generic", "crc32_generic", "9p", "9pnet_virtio"),
    *("fuse", "loop", "ublk_drv", "ext4"),
)
MORE_MODULES = (*MODULES, "xfs", "btrfs")
LIMIT_S = 850
COUNTED = ("-accel", "tcg", "-icount", "shift=0", "-smp", "1")
"""Options that make a nanosecond of the guest's clock one instruction."""
REPOSITORY = Path(__file__).parents[2]


def _initramfs(kernel: GuestKernel, folder: Path, modules: Sequence[str]) -> Path:
    init = folder / "init"
    source = Path(__file__).with_name("init.c")
    subprocess.run(["cc", "-O1", "-static", "-o", init, source], check=True)
    archive = Initramfs()
    for name in ("dev", "proc", "sys", "modules"):
        archive.folder(name)
    archive.character_device("dev/console", 5, 1)
    archive.file("init", init.read_bytes(), 0o755)
    order = Modules(kernel.modules).load_order(modules)
    for module in order:
        archive.file(f"modules/{module.name}.ko", module.content)
    archive.file("modules/order", "".join(f"{module.name}\n" for module in order).encode())
    made = folder / "initramfs"
    made.write_bytes(archive.to_bytes())
    return made


def run(script: str, out: Path, work: Path) -> str:
    """Run a shell script in a guest, in the folder `out`, the only one that it may write to. Return
    its output; fail unless the script succeeds."""
    command = _command(script, out, work, COUNTED, MODULES)
    subprocess.run(command, check=True, timeout=LIMIT_S)
    log, status = out / "log", out / "status"
    said = log.read_text() if log.exists() else (work / "console").read_text(errors="replace")
    assert status.exists(), said
    assert status.read_text() == "0\n", said
    return said


SERVE = """\
number=0
until [ -e end ]; do
    if [ -e $number.script ]; then
        sh $number.script >$number.log 2>&1
        echo $? >$number.left && mv $number.left $number.status
        number=$((number + 1))
    else
        sleep 0.2
    fi
done
"""


class Session:
    """A guest that runs several scripts in turn, because starting one takes long."""

    def __init__(self, out: Path, console: Path, process: subprocess.Popen[bytes]) -> None:
        self.out = out
        self._console = console
        self._process = process
        self._numbers = itertools.count()

    def run(self, script: str, limit_s: float = LIMIT_S) -> str:
        """Run a shell script in `out`, and return its output. Fail unless the script succeeds."""
        number = next(self._numbers)
        log, status = self.out / f"{number}.log", self.out / f"{number}.status"
        whole = self.out / f"{number}.script"
        whole.with_suffix(".part").write_text(script)
        whole.with_suffix(".part").rename(whole)
        end = time.monotonic() + limit_s
        while not status.exists():
            ended = self._process.poll() is not None or time.monotonic() > end
            assert not ended, f"{self._said(log)}{self._console.read_text(errors='replace')}"
            time.sleep(0.1)
        said = self._said(log)
        assert status.read_text() == "0\n", said
        return said

    @staticmethod
    def _said(log: Path) -> str:
        return log.read_text(errors="replace") if log.exists() else ""


@contextlib.contextmanager
def session(out: Path, work: Path) -> Iterator[Session]:
    """Start a guest for several scripts, whose clock counts instructions."""
    with subprocess.Popen(_command(SERVE, out, work, COUNTED, MORE_MODULES)) as process:
        try:
            yield Session(out, work / "console", process)
            (out / "end").touch()
            process.wait(60)
        finally:
            process.kill()


def _command(
    script: str, out: Path, work: Path, accelerated: Sequence[str], modules: Sequence[str]
) -> list[str]:
    kernel = kernels.fetch("6.12")
    (out / "script").write_text(script)
    shares = []
    for tag, path, mode in (
        ("root", "/", "readonly=on,multidevs=remap"),
        ("repository", REPOSITORY, "readonly=on,multidevs=remap"),
        ("out", out, "writeout=immediate"),
    ):
        shares += ["-fsdev", f"local,id={tag},path={path},security_model=none,{mode}"]
        shares += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    command = [PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    command += ["-machine", "pc", *accelerated, "-cpu", "max", "-m", "1G"]
    command += ["-kernel", str(kernel.vmlinux), "-initrd", str(_initramfs(kernel, work, modules))]
    command += ["-append", f"console=ttyS0 quiet panic=-1 mitigations=off -- {REPOSITORY} {out}"]
    return [*command, "-serial", f"file:{work / 'console'}", *shares]
