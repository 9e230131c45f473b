"""Models of devices in time: how long a hard disk, a card or an SSD would have taken for the
requests of a recording."""

from fscost.latency.model import Model, Parameter, catalogue, find, of_file, parameters

__all__ = ["Model", "Parameter", "catalogue", "find", "of_file", "parameters"]
