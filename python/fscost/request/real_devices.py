"""Real block devices that a command line names and confirms for erasure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fscost.errors import InputError
from fscost.lab.native import RealDevice, claim
from fscost.profile.model import DiskSpec, Profile
from fscost.run import RunSpec

_BLOCK_BYTES = 4096
_LARGEST_BYTES = 1 << 40
"""Largest size of a recorded disk."""


def real_device(
    device: str | None, erase: Sequence[str], force: bool, say: Callable[[str], None]
) -> RealDevice | None:
    """Return the device of --device, confirmed and checked."""
    return None if device is None else _claimed(device, erase, force, "--device ", say)


def real_disks(
    profiles: Sequence[Profile],
    erase: Sequence[str],
    force: bool,
    say: Callable[[str], None],
) -> dict[str, RealDevice]:
    """Return the real devices of disks, confirmed and checked, keyed by their path in the
    profiles."""
    found: dict[str, RealDevice] = {}
    for profile in profiles:
        of_profile: dict[Path, str] = {}
        for disk in (each for each in profile.disks if each.device):
            if disk.device not in found:
                named_by = f"--disk {disk.name}="
                found[disk.device] = _claimed(disk.device, erase, force, named_by, say)
            other = of_profile.setdefault(found[disk.device].path, disk.name)
            if other != disk.name:
                raise InputError(
                    f"{profile.name}: disks {other} and {disk.name} are the same device,"
                    f" {disk.device}",
                    "give each disk a device, or a partition, of its own",
                )
    return found


def refuse_unneeded(
    devices: Sequence[RealDevice | None], erase: Sequence[str], force: bool
) -> None:
    """Raise InputError for an --erase-device or --force that applies to no device."""
    named = {each.path for each in devices if each is not None}
    if force and not named:
        raise InputError(
            "--force requires --device, or a device in --disk",
            "leave it out: only a real device can contain data",
        )
    for each in erase:
        if Path(each).resolve() not in named:
            raise InputError(
                f"--erase-device {each} names neither --device nor a device of --disk",
                f"use it with --device or --disk, as in --disk main={each} --erase-device {each}",
            )


def with_real_disks(spec: RunSpec, claimed: Mapping[str, RealDevice], *, is_sized: bool) -> RunSpec:
    """Return the run with the sector sizes of its devices, and with their sizes unless the command
    line gives one (`is_sized`: --size)."""
    if not claimed:
        return spec
    size_bytes = spec.disk_size_bytes if is_sized else 0
    profiles = []
    for profile in spec.profiles:
        disks = [
            _fitted(disk, claimed[disk.device], size_bytes) if disk.device else disk
            for disk in profile.disks
        ]
        profiles.append(replace(profile, disks=tuple(disks)))
    # The first disk holds the file system. If all first disks have the same size, the run uses it.
    sizes = {profile.disks[0].size_bytes or spec.disk_size_bytes for profile in profiles}
    size_bytes = sizes.pop() if len(sizes) == 1 else spec.disk_size_bytes
    return replace(spec, profiles=tuple(profiles), disk_size_bytes=size_bytes)


def _fitted(disk: DiskSpec, device: RealDevice, size_bytes: int) -> DiskSpec:
    whole_bytes = device.size_bytes // _BLOCK_BYTES * _BLOCK_BYTES
    chosen_bytes = disk.size_bytes or size_bytes or whole_bytes
    if chosen_bytes > whole_bytes:
        raise InputError(
            f"disk {disk.name}: {disk.device} has {whole_bytes} bytes, fewer than {chosen_bytes}",
            f"give it a smaller size: --disk {disk.name}={disk.device},size=…",
        )
    if chosen_bytes > _LARGEST_BYTES:
        raise InputError(
            f"disk {disk.name}: {disk.device} has {whole_bytes} bytes, but a recorded disk"
            " can have at most 1T",
            f"use a part of it: --disk {disk.name}={disk.device},size=1T",
        )
    return replace(
        disk,
        size_bytes=chosen_bytes,
        logical_block_bytes=max(disk.logical_block_bytes, device.logical_block_bytes),
        physical_block_bytes=max(disk.physical_block_bytes, device.physical_block_bytes),
    )


def _claimed(
    device: str, erase: Sequence[str], force: bool, named_by: str, say: Callable[[str], None]
) -> RealDevice:
    same = (each for each in erase if Path(each).resolve() == Path(device).resolve())
    confirmed = next(same, next(iter(erase), None))
    claimed = claim(Path(device), None if confirmed is None else Path(confirmed), force, named_by)
    openers = claimed.openers()
    if openers:
        say(
            f"{claimed.path} is open in {', '.join(openers)}, "
            "which may write to it or read erased data"
        )
    return claimed
