"""KVM only when a guest has answered under it: that /dev/kvm opens proves nothing (nested, it may
hang or abort).

The answer is kept for this host's kernel and QEMU: asking takes seconds where it is no.
"""

import hashlib
import json
import os
from pathlib import Path

from fscost.errors import HostError
from fscost.lab.vm import cache, image, qemu
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import EMULATION, KVM, Accelerator, Qemu

PROBE_S = 3


def choose(kernel: GuestKernel, confinement: Confinement) -> Accelerator:
    """KVM if a guest boots under it, else emulation with virtual time."""
    return KVM if why_no_kvm(kernel, confinement) is None else EMULATION


def why_no_kvm(kernel: GuestKernel, confinement: Confinement) -> str | None:
    """None when it works here."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return (
            "/dev/kvm is not there"
            if not Path("/dev/kvm").exists()
            else "/dev/kvm may not be opened; join the group kvm"
        )
    asked = json.dumps(
        {
            "host": os.uname().release,
            "qemu": qemu.version(),
            "kernel": kernel.version,
            "user": confinement.user,
        }
    )
    folder = cache.root() / "kvm" / hashlib.sha256(asked.encode()).hexdigest()[:24]
    # Beside the answer until it is complete, so that who is killed while asking leaves nothing.
    answer = (
        cache.complete(
            folder, lambda made: _keep(made, _probe(kernel, confinement, made.parent / "initramfs"))
        )
        / "because"
    )
    return answer.read_text() or None


def _keep(made: Path, because: str | None) -> None:
    (made / "because").write_text(because or "")


def _probe(kernel: GuestKernel, confinement: Confinement, initramfs: Path) -> str | None:
    """A guest with what it needs to speak, and nothing else."""
    initramfs.write_bytes(image.build(kernel, confinement.agent, image.TRANSPORT))
    initramfs.chmod(0o644)
    try:
        with (
            qemu.machine_of(KVM, kernel.vmlinux, initramfs) as (described, descriptors),
            Qemu(described, confinement, (), descriptors) as machine,
        ):
            Port(machine).hello(PROBE_S)
    except HostError as error:
        return (
            f"a guest did not answer under it in {PROBE_S} s: {' '.join(error.what.split())[:300]}"
        )
    return None
