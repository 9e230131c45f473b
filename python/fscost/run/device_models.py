"""Texts of the device models that the disks of a run name."""

from collections.abc import Sequence

from fscost import latency
from fscost.profile.model import Profile


def device_models(profiles: Sequence[Profile]) -> dict[str, str]:
    """By the name that a disk gives it, each model as TOML."""
    disks = (disk for profile in profiles for disk in profile.disks)
    names = dict.fromkeys(disk.model for disk in disks if disk.model and not disk.device)
    return {name: latency.find(name).text for name in names}
