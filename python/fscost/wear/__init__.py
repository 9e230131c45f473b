"""Wear that recorded writes cause on an SSD, an SD card or an eMMC: NAND writes, erases and life,
by cause."""

from fscost.wear.array import Shape, of_options
from fscost.wear.array import parse as parse_array
from fscost.wear.columns import replayed, unreplayed, worn
from fscost.wear.counters import Counters
from fscost.wear.counters import read as read_counters
from fscost.wear.device import (
    PARAMETERS,
    Device,
    Parameter,
    find,
    of_file,
)
from fscost.wear.groups import GroupWear, grouped, grouping, replayed_disks
from fscost.wear.life import Life, life
from fscost.wear.measure import (
    By,
    Charge,
    Place,
    Repeat,
    Source,
    Wear,
    measure,
    members,
    sources,
    trace_sources,
)
from fscost.wear.times import ArrayLoad, Times, array_load, has_timing, times

__all__ = [
    "PARAMETERS",
    "ArrayLoad",
    "By",
    "Charge",
    "Counters",
    "Device",
    "GroupWear",
    "Life",
    "Parameter",
    "Place",
    "Repeat",
    "Shape",
    "Source",
    "Times",
    "Wear",
    "array_load",
    "find",
    "grouped",
    "grouping",
    "has_timing",
    "life",
    "measure",
    "members",
    "of_file",
    "of_options",
    "parse_array",
    "read_counters",
    "replayed",
    "replayed_disks",
    "sources",
    "times",
    "trace_sources",
    "unreplayed",
    "worn",
]
