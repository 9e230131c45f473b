"""What a file system and its options really cost on flash, and why.

run = fscost.load("fscost-runs/NAME")   # samples, rows, explain(), figures, report()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fscost.api import Run, load

__all__ = ["Run", "load"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: the command line must start at once."""
    if name not in __all__:
        raise AttributeError(f"module 'fscost' has no attribute {name!r}")
    return getattr(import_module("fscost.api"), name)
