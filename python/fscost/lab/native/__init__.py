"""Native lab: this machine's own kernel, with recorded disks."""

from fscost.lab.native.lab import NativeLab
from fscost.lab.native.real_device import RealDevice, claim, look_at

__all__ = ["NativeLab", "RealDevice", "claim", "look_at"]
