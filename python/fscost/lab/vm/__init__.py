"""The VM lab: a throwaway virtual machine for each cell, without any privilege."""

from fscost.lab.vm.checks import checks
from fscost.lab.vm.confinement import seen_python, unseen_directory
from fscost.lab.vm.examine import StateDisk, examining, recovering
from fscost.lab.vm.kernels import fetch
from fscost.lab.vm.lab import VmLab

__all__ = [
    "StateDisk",
    "VmLab",
    "checks",
    "examining",
    "fetch",
    "recovering",
    "seen_python",
    "unseen_directory",
]
