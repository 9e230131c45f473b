"""The command line. No other module imports it."""

import os
import sys


def main() -> None:
    """Run the `fscost` entry point.

    Modules are imported inside this function, so that an import that hits a resource limit is
    reported as one clear error.
    """
    # Importing numpy starts a thread for each further core. Under a memory limit, the import waits
    # for these threads for ever.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Looking for plugins, pydantic reads the entry points of each package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    # Arrow's own allocator keeps freed memory: 50 MB more in `fscost show` of 2,000 cells.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        from fscost.cli import early

        early.begin(sys.argv[1:])
        from fscost.cli.app import main as program
    except (ImportError, MemoryError, OSError) as error:
        print(
            f"fscost: cannot start: {error}\n  run `make setup`, and check the limits on memory and"
            " open files (`ulimit -a`)",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    program()


__all__ = ["main"]
