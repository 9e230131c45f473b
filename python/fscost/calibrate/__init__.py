"""Models of devices from measurements: a block device measured with fio becomes a section
[latency]."""

from fscost.calibrate.fio import commands, measure
from fscost.calibrate.model import KINDS, Kind, toml

__all__ = ["KINDS", "Kind", "commands", "measure", "toml"]
