"""The command line. Nothing imports it."""

import os
import sys


def main() -> None:
    """The entry point `fscost`. Its modules are imported here, so that a limit that stops an import is one clear error too."""
    # Importing numpy starts a thread for each further core; where memory is limited it waits for
    # them for ever.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from fscost.cli.app import main as program
    except (ImportError, MemoryError, OSError) as error:
        print(
            f"fscost: it cannot start: {error}\n  run `make setup`, and look at the limits of memory and files (`ulimit -a`)",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    program()


__all__ = ["main"]
