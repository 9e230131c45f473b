"""The VM lab: a throwaway virtual machine for each cell, without any privilege."""

from fscost.lab.vm.checks import checks
from fscost.lab.vm.kernels import PACKAGES, fetch
from fscost.lab.vm.lab import VmLab

__all__ = ["KERNELS", "VmLab", "checks", "fetch"]

KERNELS = tuple(PACKAGES)
"""Names of the guest kernels that the distribution offers, the default first."""
