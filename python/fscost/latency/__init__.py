"""Latency models of devices: the time a hard disk, an SD card or an SSD would take for the requests
of a recording."""

from fscost.latency.model import Model, Parameter, find, of_file, parameters
from fscost.latency.replay import (
    OPS,
    DiskTimes,
    Latencies,
    Replay,
    Times,
    Waits,
    live,
    parse_models,
    replay,
    replay_phases,
    replay_trace,
)

__all__ = [
    "OPS",
    "DiskTimes",
    "Latencies",
    "Model",
    "Parameter",
    "Replay",
    "Times",
    "Waits",
    "find",
    "live",
    "of_file",
    "parameters",
    "parse_models",
    "replay",
    "replay_phases",
    "replay_trace",
]
