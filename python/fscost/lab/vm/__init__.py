"""The VM lab: a throwaway virtual machine for each cell, without any privilege."""

from fscost.lab.vm.kernels import PACKAGES
from fscost.lab.vm.lab import VmLab

__all__ = ["KERNELS", "VmLab"]

KERNELS = tuple(PACKAGES)
"""Names of the kernels that a distribution has for guests, the default first."""
