"""`big`: one large file."""

from pathlib import Path

from fscost.workload.recipes.request import Request
from fscost.workload.recipes.text import text

_MIB = 1 << 20
# More than any file system or recording compresses at once, so that it cannot exploit repetition.
_TEXT_BLOCKS = 4


def make(folder: Path, request: Request) -> None:
    """Make `mib` MiB of `content`: random bytes (incompressible), text, or zeros."""
    rng = request.rng("big-file")
    content = request.values["content"]
    blocks = [text(rng, _MIB) for _ in range(_TEXT_BLOCKS)] if content == "text" else [bytes(_MIB)]
    with (folder / "big").open("wb") as file:
        for i in range(request.number("mib")):
            file.write(rng.randbytes(_MIB) if content == "random" else blocks[i % len(blocks)])
