"""KVM only when a guest has answered under it: that /dev/kvm opens proves nothing (nested, it may hang or abort).

The answer is kept for this host's kernel and QEMU: asking takes seconds where it is no.
"""

import json
import os
import tempfile
from pathlib import Path

from fscost.errors import HostError
from fscost.lab.vm import cache, image, qemu
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import EMULATION, KVM, Accelerator, Machine, Qemu

PROBE_S = 3


def choose(kernel: GuestKernel, agent: Path) -> Accelerator:
    """KVM if a guest boots under it, else emulation with virtual time."""
    return KVM if why_no_kvm(kernel, agent) is None else EMULATION


def why_no_kvm(kernel: GuestKernel, agent: Path) -> str | None:
    """None when it works here."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "/dev/kvm is not there" if not Path("/dev/kvm").exists() else "/dev/kvm may not be opened; join the group kvm"
    asked = {"host": os.uname().release, "qemu": qemu.version(), "kernel": kernel.version}
    kept = cache.root() / "kvm.json"
    try:
        known = json.loads(kept.read_text())
        if known["asked"] == asked and (known["because"] is None or isinstance(known["because"], str)):
            return known["because"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    because = _probe(kernel, agent)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:
        json.dump({"asked": asked, "because": because}, file)
    Path(file.name).replace(kept)
    return because


def _probe(kernel: GuestKernel, agent: Path) -> str | None:
    """A guest with what it needs to speak, and nothing else."""
    with tempfile.NamedTemporaryFile(prefix="fscost-probe-") as initramfs:
        initramfs.write(image.build(kernel, agent, image.TRANSPORT))
        initramfs.flush()
        arguments = Machine(KVM, kernel.vmlinux, Path(initramfs.name)).arguments(None, is_private=True)
        try:
            with Qemu(arguments, agent) as machine:
                Port(machine).hello(PROBE_S)
        except HostError as error:
            return f"a guest did not answer under it in {PROBE_S} s: {' '.join(error.what.split())[:300]}"
    return None
