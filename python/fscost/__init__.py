"""What a file system and its options really cost on flash, and why.

run = fscost.compare("ext4", "xfs", command="make -j2")   # measures; the same as an object
run = fscost.load("fscost-runs/NAME")   # samples, rows, explain(), wear(), figures, report()
bytes = fscost.explain("recording.fscost")   # a row for each written extent

`fscost.api` has these and the other functions for scripts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fscost.api import Request, Run, compare, explain, load

__all__ = ["Request", "Run", "compare", "explain", "load"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: the command line must start at once."""
    if name not in __all__:
        raise AttributeError(f"module 'fscost' has no attribute {name!r}")
    return getattr(import_module("fscost.api"), name)
