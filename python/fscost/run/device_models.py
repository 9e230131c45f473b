"""TOML texts of the device models that a run's disks name."""

from collections.abc import Sequence

from fscost import latency
from fscost.profile.model import Profile


def device_models(profiles: Sequence[Profile]) -> dict[str, str]:
    """Return the TOML text of each model, by the name that disks give it."""
    disks = (disk for profile in profiles for disk in profile.disks)
    names = dict.fromkeys(disk.model for disk in disks if disk.model and not disk.device)
    return {name: latency.find(name).text for name in names}
