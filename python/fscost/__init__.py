"""fscost: the cost of file systems and their options, and its causes.

run = fscost.compare("ext4", "xfs", command="make -j2")   # measures; returns a Run
run = fscost.load("fscost-runs/NAME")   # samples, rows, explain(), wear(), figures, report()
bytes = fscost.explain("recording.fscost")   # `.table`: one row per written extent

`fscost.api` has these and the other functions for scripts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fscost.api import Request, Run, compare, explain, load

__all__ = ["Request", "Run", "compare", "explain", "load"]


def __getattr__(name: str) -> Any:
    """Import names from `fscost.api` on first use, so that the command line starts fast."""
    if name == "__version__":
        return import_module("importlib.metadata").version("fscost")
    if name not in __all__:
        raise AttributeError(f"module 'fscost' has no attribute {name!r}")
    return getattr(import_module("fscost.api"), name)
