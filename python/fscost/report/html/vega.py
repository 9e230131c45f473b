"""The script that draws a page's charts: Vega, and what puts its charts into a page.

vl-convert builds it, in as much time as all charts take. It is the same for each page, so it is
kept in the user's cache. Browsers run it, so a cache that others can write is not used."""

import hashlib
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

from fscost.errors import HostError
from fscost.files import cache as cached

_BUILD = (
    "import sys, vl_convert;"
    " sys.stdout.write(vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;'))"
)
_NAME = "vega.js"
_KEPT = 3
"""Scripts of other versions that stay in the cache."""


@cache
def runtime() -> Future[str]:
    """Start reading or building the script, once per process."""
    return ThreadPoolExecutor(1).submit(_script)


def _script() -> str:
    """Return the script from the cache, or build it; without a cache that can be used, keep
    nothing."""
    made_by = f"{version('vl-convert-python')} {_BUILD}"
    name = hashlib.sha256(made_by.encode()).hexdigest()[:24]

    def make(made: Path) -> None:
        cached.discard_all_but(cached.root() / "vega", _KEPT)
        (made / _NAME).write_text(_built(), "utf-8")

    def use(folder: Path) -> str:
        file = cached.CheckedFile(folder / _NAME, cached.digests(folder).get(_NAME))
        return file.read().decode("utf-8")

    try:
        return cached.opened(cached.root() / "vega" / name, make, use, lambda _: None)
    except HostError:
        return _built()


def _built() -> str:
    """Build the script in a process of its own, because vl-convert holds the GIL meanwhile."""
    # -P: no module of the current folder, which may be a run that a workload wrote to.
    program = [sys.executable, "-P", "-c", _BUILD]
    return subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
