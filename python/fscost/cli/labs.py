"""Which lab a comparison runs in."""

from pathlib import Path

from fscost.errors import InputError
from fscost.lab.base import Lab
from fscost.lab.fake import FakeLab
from fscost.lab.native import NativeLab, RealDevice, claim
from fscost.lab.vm import VmLab
from fscost.run.lock import HOST


def lab(name: str, device: RealDevice | None) -> tuple[Lab, str]:
    """The lab, and the lock that keeps others out of it. `fake:OPTIONS` is for tests; it measures nothing and disturbs nobody."""
    if name == "native":
        return NativeLab(device=device), HOST
    if name == "vm":
        if device is not None:
            raise InputError("--device is for the native lab: a guest has recorded disks only", "leave one of the two out")
        return VmLab(), HOST
    kind, _, options = name.partition(":")
    if kind == "fake":
        return FakeLab.from_text(options), f"{HOST}.fake.{id(options)}"
    raise InputError(f"--lab {name!r} is unknown", "native or vm")


def real_device(device: str | None, erase: str | None, force: bool) -> RealDevice | None:
    """The block device that a person gave up, checked by the lab."""
    if device is None:
        if erase is not None:
            raise InputError("--erase-device confirms --device, which is missing", f"--device {erase} --erase-device {erase}")
        return None
    return claim(Path(device), None if erase is None else Path(erase), force)
