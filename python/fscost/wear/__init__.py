"""What recorded writes do to an SSD, a card or an eMMC: NAND writes, erases, life, and which causes pay for them."""

from fscost.wear.array import Shape
from fscost.wear.array import parse as parse_array
from fscost.wear.device import PARAMETERS, Device, Parameter, catalogue, find, read_device, to_toml
from fscost.wear.life import Life, life
from fscost.wear.measure import By, Charge, Source, Wear, measure, members, sources
from fscost.wear.times import ArrayLoad, IntervalTimes, Times, array_load, has_timing, times

__all__ = [
    "PARAMETERS",
    "ArrayLoad",
    "By",
    "Charge",
    "Device",
    "IntervalTimes",
    "Life",
    "Parameter",
    "Shape",
    "Source",
    "Times",
    "Wear",
    "array_load",
    "catalogue",
    "find",
    "has_timing",
    "life",
    "measure",
    "members",
    "parse_array",
    "read_device",
    "sources",
    "times",
    "to_toml",
]
