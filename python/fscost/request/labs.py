"""Choice of the lab for a run."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from fscost import matrix
from fscost.errors import HostError, InputError, did_you_mean
from fscost.lab.fake import FakeLab
from fscost.lab.native import NativeLab, RealDevice
from fscost.lab.spec import LabSpec
from fscost.lab.vm import VmLab, unseen_directory
from fscost.request.model import AUTO
from fscost.run import RunSpec
from fscost.run.lock import HOST


def choose_lab(
    name: str,
    spec: RunSpec,
    device: RealDevice | None = None,
    modules: Sequence[str] = (),
    real_disks: Mapping[str, RealDevice] = MappingProxyType({}),
    *,
    say: Callable[[str], None],
) -> LabSpec:
    """Choose the lab. `fake:OPTIONS` is for tests: it measures nothing."""
    kind, _, options = name.partition(":")
    if kind == "fake":
        return LabSpec("fake", fake=options)
    kernels = [profile.kernel for profile in spec.profiles if profile.kernel]
    if modules and not _images(kernels):
        raise InputError(
            "--modules requires a --kernel that is an image",
            "leave it out, or give --kernel the image's path",
        )
    if name == AUTO:
        name, because = (
            ("vm", "")
            if kernels
            else ("native", "")
            if device is not None or real_disks
            else _where(spec, say)
        )
        if because:
            say(f"lab vm, because {because}")
    if name == "native":
        if kernels:
            raise InputError(
                f"--kernel {kernels[0]} is for guests, and --lab native is this machine's own"
                " kernel",
                "leave one of the two out",
            )
        return LabSpec("native")
    if name == "vm":
        if device is not None:
            raise InputError(
                "--device is for the native lab: a guest has recorded disks only",
                "leave one of the two out",
            )
        if real_disks:
            raise InputError(
                f"--disk with {next(iter(real_disks))} is for the native lab: a guest has recorded"
                " disks only",
                "leave out --lab vm, or name a device model",
            )
        if spec.writable or spec.network:
            raise InputError(
                "--writable and --network are for the native lab: a guest reads the host's files"
                " and has no network",
                "leave them out",
            )
        images = {
            kernel: Path(folder) for kernel, folder in zip(_images(kernels), modules, strict=False)
        }
        if len(images) != len(modules) or set(images) != set(_images(kernels)):
            raise InputError(
                f"--kernel images: {len(_images(kernels))}, --modules folders: {len(modules)}",
                "give each image its folder of modules",
            )
        here = unseen_directory()
        if here is not None and any(f"{here}/" in step.shell for step in spec.workload.steps):
            say(f"guests do not see {here} itself: start fscost in a folder below it (docs/vm.md)")
        return LabSpec("vm", tuple(images.items()))
    remedy = did_you_mean(name, ("native", "vm")) or "native or vm"
    raise InputError(f"--lab {name!r} is unknown", remedy)


def lock_of(lab: str) -> str:
    """Return the lock that excludes other runs in the lab. A fake lab excludes nobody, unless its
    options name a lock."""
    kind, _, options = lab.partition(":")
    if kind != "fake":
        return HOST
    return f"{HOST}.fake.{FakeLab.from_text(options).lock or os.getpid()}"


def _images(kernels: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(kernel for kernel in kernels if "/" in kernel))


def _where(spec: RunSpec, say: Callable[[str], None]) -> tuple[str, str]:
    """Choose the native lab, unless only the VM lab can run a profile. Also return the reason."""
    guests = VmLab(say=say)
    no_guests_reason = guests.unavailable_reason()
    native = NativeLab()
    try:
        native.check()
    except HostError as error:
        if no_guests_reason is not None:
            raise HostError(
                error.what,
                f"{error.remedy}; or for the VM lab, which needs no privilege: {no_guests_reason}",
            ) from None
        return "vm", f"the native lab cannot run here: {error.what}"
    if no_guests_reason is not None:
        return "native", ""
    for cell in next(matrix.repetitions(spec.profiles, spec.workload, spec.seed)):
        because = native.unsupported_type_reason(cell.profile)
        if because is not None and guests.unsupported_reason(cell, spec.disk_size_bytes) is None:
            return "vm", because
    return "native", ""
