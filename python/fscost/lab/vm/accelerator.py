"""Choice of the accelerator: KVM only if a guest has answered under it. Opening /dev/kvm proves
nothing: nested KVM may hang or abort.

The answer is cached for this host's kernel and QEMU, because a negative probe takes seconds. A
guest that hangs looks like one on a busy host, so a negative answer holds for a day only. Where a
signal ended the guest, nothing was learned.
"""

import hashlib
import json
import os
import time
from pathlib import Path

from fscost.errors import HostError
from fscost.files import cache
from fscost.lab.vm import image, qemu
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import EMULATION, KVM, Accelerator, KilledError, Qemu

PROBE_S = 3
_NO_S = 24 * 3600


def choose(kernel: GuestKernel, confinement: Confinement) -> Accelerator:
    """Choose KVM if a guest boots under it, else emulation with virtual time."""
    return KVM if kvm_unusable_reason(kernel, confinement) is None else EMULATION


def kvm_unusable_reason(kernel: GuestKernel, confinement: Confinement) -> str | None:
    """Return why KVM is unusable here, or None if it works."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        if not Path("/dev/kvm").exists():
            return "/dev/kvm does not exist"
        return "no permission to open /dev/kvm; join the group kvm"
    asked = json.dumps(
        {
            "host": os.uname().release,
            "qemu": qemu.version(),
            "kernel": kernel.version,
            "user": confinement.user,
        }
    )
    folder = cache.root() / "kvm" / hashlib.sha256(asked.encode()).hexdigest()[:24]
    # The initramfs lies beside the unfinished entry, so that a killed probe leaves nothing behind.
    try:
        because = cache.opened(
            folder,
            lambda made: _keep(made, _probe(kernel, confinement, made.parent / "initramfs")),
            _kept,
            lambda _: None,
        )
    except KilledError as error:
        return f"the guest that tries KVM did not live long enough: {error.what}"
    return because and f"{because} (tried again a day later, or once {folder} is deleted)"


def _kept(entry: Path) -> str | None:
    """Return the answer of an entry; DamagedError if it no longer holds."""
    file = entry / "because"
    try:
        because, made_s = file.read_text(), file.stat().st_mtime
    except OSError as error:  # another process has just set it aside
        raise cache.DamagedError(f"{file}: {error.strerror}") from None
    if because and time.time() - made_s > _NO_S:
        raise cache.DamagedError(f"{file} is a day old")
    return because or None


def _keep(made: Path, because: str | None) -> None:
    (made / "because").write_text(because or "")


def _probe(kernel: GuestKernel, confinement: Confinement, initramfs: Path) -> str | None:
    """Boot a guest with only the modules that it needs to answer. Return why it failed, or None."""
    initramfs.write_bytes(image.build(kernel, confinement.agent, image.TRANSPORT))
    initramfs.chmod(0o644)
    try:
        with (
            qemu.machine_of(KVM, kernel.vmlinux, initramfs) as (described, descriptors),
            Qemu(described, confinement, (), descriptors) as machine,
        ):
            try:
                Port(machine).hello(PROBE_S)
            except HostError as error:
                raise machine.blamed(error) from None
    except KilledError:
        raise
    except HostError as error:
        words = " ".join(error.what.split())[:300]
        return f"a guest under KVM did not answer in {PROBE_S} s: {words}"
    return None
