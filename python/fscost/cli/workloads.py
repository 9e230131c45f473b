"""`fscost workloads`: what can be named after --workload."""

import sys
import textwrap

from fscost import workload
from fscost.report.width import given_columns
from fscost.view.grid import plain

_LEAST_WORDS = 30


def workloads() -> None:
    """List the built-in workloads: name, the most that a cell writes, and what it does."""
    found = workload.catalogue()
    width = max(len(each.name) for each in found)
    columns = given_columns(sys.stdout)
    for each in found:
        size = f"{(workload.resolve(each.name).write_bytes_estimate or 0) >> 20} MiB"
        begin = f"{each.name:{width}}  {size:>8}  "
        room = None if columns is None else max(columns - len(begin), _LEAST_WORDS)
        lines = [each.summary] if room is None else textwrap.wrap(each.summary, room)
        for number, line in enumerate(lines):
            print(plain(f"{begin if number == 0 else ' ' * len(begin)}{line}"))
    print("\nAny other: a command of yours, as in `fscost compare -- make -j2`")
