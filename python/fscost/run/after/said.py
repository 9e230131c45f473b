"""Numbers that a step prints about itself: lines `fscost METRIC=VALUE` of its output."""

import re

from fscost.lab.base import CellResult, Sample
from fscost.results import METRICS
from fscost.results.metrics import SAID

_STEP = re.compile(rb"=== (.+)\n?")
_NUMBER = re.compile(rb"fscost ([a-z_]+)=([0-9]{1,18})\n?")
_MAX_LINE = 1 << 16


def add_to(result: CellResult) -> None:
    """Add the numbers of a finished cell's steps. Only metrics of `SAID` may be printed."""
    if result.output is None:
        return
    phases = {sample.phase: sample.measured for sample in result.samples}
    phase = ""
    found: dict[tuple[str, str], float] = {}
    with result.output.open("rb") as lines:
        while line := lines.readline(_MAX_LINE):
            if step := _STEP.fullmatch(line):
                phase = step[1].decode(errors="replace")
            elif number := _NUMBER.fullmatch(line):
                found[phase, number[1].decode()] = float(number[2])
    result.samples += [
        Sample(phase, phases[phase], "", metric, METRICS[metric].unit, value)
        for (phase, metric), value in found.items()
        if phase in phases and metric in SAID
    ]
