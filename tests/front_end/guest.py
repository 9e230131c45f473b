"""A guest of Debian's 6.12 in which fscost's own programs run: this machine's kernel may lack
ublk_drv. Emulated, so slow; the userland is the host's, read-only."""

import subprocess
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
LIMIT_S = 600
REPOSITORY = Path(__file__).parents[2]


def _initramfs(kernel: GuestKernel, folder: Path) -> Path:
    init = folder / "init"
    source = Path(__file__).with_name("init.c")
    subprocess.run(["cc", "-O1", "-static", "-o", init, source], check=True)
    archive = Initramfs()
    for name in ("dev", "proc", "sys", "modules"):
        archive.folder(name)
    archive.character_device("dev/console", 5, 1)
    archive.file("init", init.read_bytes(), 0o755)
    order = Modules(kernel.modules).load_order(MODULES)
    for module in order:
        archive.file(f"modules/{module.name}.ko", module.content)
    archive.file("modules/order", "".join(f"{module.name}\n" for module in order).encode())
    made = folder / "initramfs"
    made.write_bytes(archive.to_bytes())
    return made


def run(script: str, out: Path, work: Path) -> str:
    """Run a shell script in a guest, in the folder `out`, the only one that it may write to. Gives
    what it printed; fails unless it succeeds."""
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
    command += ["-machine", "pc", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1G"]
    command += ["-kernel", str(kernel.vmlinux), "-initrd", str(_initramfs(kernel, work))]
    command += ["-append", f"console=ttyS0 quiet panic=-1 mitigations=off -- {REPOSITORY} {out}"]
    command += ["-serial", f"file:{work / 'console'}", *shares]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    log, status = out / "log", out / "status"
    said = log.read_text() if log.exists() else (work / "console").read_text(errors="replace")
    assert status.exists(), said
    assert status.read_text() == "0\n", said
    return said
