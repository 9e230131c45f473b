"""Checks of `fscost doctor` for the VM lab."""

from pathlib import Path

from fscost.errors import HostError
from fscost.files import cache
from fscost.host import Check, install_command, tool
from fscost.lab.vm import accelerator, confinement, kernels, qemu
from fscost.lab.vm.confinement import Confinement


def checks(agent: Path | None) -> list[Check]:
    """Run the checks: QEMU first, because no guest runs without it, then confinement, cached
    kernels and acceleration."""
    found = _qemu()
    try:
        chosen = confinement.choose(agent, qemu.PROGRAM) if agent is not None and found.ok else None
        return [
            found,
            _confinement(chosen),
            *(_kernel(name) for name in kernels.names()),
            _kvm(chosen),
        ]
    except HostError as error:
        return [found, Check("guests", False, error.what, error.remedy or "", required=True)]


def _confinement(chosen: Confinement | None) -> Check:
    name = "guests' view"
    if chosen is None:
        return Check(name, False, "not checked: it needs QEMU", "fix the line above first")
    user = "" if chosen.user is None else f"QEMU runs as user {chosen.user[0]}; "
    if chosen.is_hidden:
        unseen = "guests do not see /proc, /sys, /dev, /run, /root and /home of this host"
        return Check(name, True, f"{user}{unseen}")
    seen = f"{user}guests can read every file that this user can read"
    return Check(name, False, seen, "allow unprivileged user namespaces, or run as root")


def _qemu() -> Check:
    try:
        version = qemu.version()
    except HostError as error:
        return Check("QEMU", False, error.what, error.remedy or "", required=True)
    if version is None:
        remedy = f"`{install_command([qemu.PROGRAM])}`"
        return Check("QEMU", False, f"{qemu.PROGRAM} is missing", remedy, required=True)
    return Check("QEMU", True, f"{version}, {tool(qemu.PROGRAM)}", required=True)


def _kernel(name: str) -> Check:
    found = kernels.cached(name)
    if found is None:
        remedy = f"`fscost doctor --fetch {name}`, or it is fetched when first used"
        return Check(f"guest kernel {name}", False, f"not in {cache.root()}", remedy)
    package = f" ({found.package})" if found.package else ""
    detail = f"Linux {found.version}{package}, {found.vmlinux.parent}"
    return Check(f"guest kernel {name}", True, detail)


def _kvm(chosen: Confinement | None) -> Check:
    """Check KVM by booting a guest, if a kernel is cached."""
    found = next(filter(None, map(kernels.cached, kernels.names())), None)
    if chosen is None or found is None:
        remedy = "the lines above say what a guest still needs"
        return Check("KVM", False, "not checked: the check boots a guest", remedy)
    because = accelerator.kvm_unusable_reason(found, chosen)
    if because is None:
        return Check("KVM", True, "guests run under it")
    remedy = "guests are emulated instead: bytes stay exact, runs take ten times as long"
    return Check("KVM", False, because, remedy)
