"""What recorded writes do to an SSD, a card or an eMMC: NAND writes, erases, life, and which causes pay for them."""

from fscost.wear.device import PARAMETERS, Device, Parameter, catalogue, find, read_device, to_toml
from fscost.wear.life import Life, life
from fscost.wear.measure import By, Charge, Source, Wear, measure, sources

__all__ = [
    "PARAMETERS",
    "By",
    "Charge",
    "Device",
    "Life",
    "Parameter",
    "Source",
    "Wear",
    "catalogue",
    "find",
    "life",
    "measure",
    "read_device",
    "sources",
    "to_toml",
]
