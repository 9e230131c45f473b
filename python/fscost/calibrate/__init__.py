"""Device models from measurements: fio measures a block device, and the results become a section
[latency]."""

from fscost.calibrate.fio import commands, measure
from fscost.calibrate.model import KINDS, toml

__all__ = ["KINDS", "commands", "measure", "toml"]
