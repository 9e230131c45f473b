"""`fscost workloads`: what can be named after --workload."""

from fscost import workload
from fscost.cli.lines import print_lines


def workloads() -> None:
    """List the built-in workloads, one line each."""
    print_lines([(found.name, found.summary) for found in workload.catalogue()])
    print("\nAny other: a command of yours, as in `fscost compare -- make -j2`")
