"""One policy for a computation that fails: the cell keeps all its other results."""

from collections.abc import Iterator
from contextlib import contextmanager

from fscost.errors import FscostError
from fscost.lab.base import CellResult

NOT_COMPUTED = "not_computed"
"""Cell fact: why a result is missing, by what it is."""


@contextmanager
def guarded(result: CellResult, what: str) -> Iterator[None]:
    """Keep an error as the reason why the cell lacks `what`."""
    try:
        yield
    except FscostError as error:
        result.facts.setdefault(NOT_COMPUTED, {})[what] = error.what
    except OSError as error:
        result.facts.setdefault(NOT_COMPUTED, {})[what] = error.strerror or str(error)
