"""`fscost workloads`: what can be named after --workload."""

from fscost import workload
from fscost.cli.lines import print_lines


def workloads() -> None:
    """List the built-in workloads: name, the most that a cell writes, and what it does."""
    found = workload.catalogue()
    width = max(len(each.name) for each in found)
    entries = []
    for each in found:
        size_bytes = workload.resolve(each.name).write_bytes_estimate or 0
        size = f"{size_bytes >> 20} MiB"
        entries.append((f"{each.name:{width}}  {size:>8}", each.summary))
    print_lines(entries)
    print("\nAny other: a command of yours, as in `fscost compare -- make -j2`")
