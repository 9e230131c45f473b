"""Early start of `fscost explain RECORDING`, before the command line is parsed.

Importing the parser takes longer than importing everything that this module needs.
"""

import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fscost.capture import Explaining

_begun: "list[Explaining]" = []


def begin(arguments: Sequence[str]) -> None:
    """Print the title and start explaining the recording on other threads, if it is the only
    argument and a regular file. Errors are ignored: the command will encounter them again and
    report them."""
    _begun.clear()
    if len(arguments) != 2 or arguments[0] != "explain" or arguments[1].startswith("-"):
        return
    # If a standard stream is closed, the next file that is opened takes its descriptor.
    if None in (sys.stdin, sys.stdout, sys.stderr) or _is_memory_limited():
        return
    recording = Path(arguments[1])
    if not _is_plain_file(recording):
        return
    from fscost import capture
    from fscost.errors import FscostError
    from fscost.view.grid import plain

    with suppress(FscostError, RuntimeError):
        _begun.append(capture.Explaining(recording).start())
    if _begun:
        encoding = sys.stdout.encoding
        # Unwritable output stays in the buffer; the command reports the error.
        with suppress(OSError):
            print(plain(str(recording)).encode(encoding, "replace").decode(encoding), flush=True)


def begun(recording: Path) -> "Explaining | None":
    """Return the explanation of this recording if it has begun. Its title is already printed."""
    found = _begun.pop() if _begun else None
    return found if found is not None and found.recording == recording else None


def _is_plain_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        return False


def _is_memory_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
