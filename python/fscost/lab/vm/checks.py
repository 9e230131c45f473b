"""What `fscost doctor` says of the VM lab."""

from pathlib import Path

from fscost.host import Check, install_command, tool
from fscost.lab.vm import accelerator, cache, kernels, qemu


def checks(agent: Path | None) -> list[Check]:
    """QEMU first, without which no guest runs; then the kernels that are cached, and how guests run."""
    return [_qemu(), *(_kernel(name) for name in kernels.PACKAGES), _kvm(agent)]


def _qemu() -> Check:
    version = qemu.version()
    if version is None:
        return Check("QEMU", False, f"{qemu.PROGRAM} is missing", f"`{install_command([qemu.PROGRAM])}`", required=True)
    return Check("QEMU", True, f"{version}, {tool(qemu.PROGRAM)}", required=True)


def _kernel(name: str) -> Check:
    found = kernels.cached(name)
    if found is None:
        return Check(f"guest kernel {name}", False, f"not in {cache.root()}", f"`fscost doctor --fetch {name}`, or it is fetched when first used")
    return Check(f"guest kernel {name}", True, f"Linux {found.version}, {found.vmlinux.parent}")


def _kvm(agent: Path | None) -> Check:
    """Asked of a guest, if there is a kernel for one."""
    found = next((kernel for name in kernels.PACKAGES if (kernel := kernels.cached(name)) is not None), None)
    if agent is None or found is None or qemu.version() is None:
        return Check("KVM", False, "not asked: that takes a guest", "the lines above say what is missing for one")
    because = accelerator.why_no_kvm(found, agent)
    if because is None:
        return Check("KVM", True, "a guest answers under it")
    return Check("KVM", False, because, "guests are emulated instead: bytes as exact, ten times as slow")
