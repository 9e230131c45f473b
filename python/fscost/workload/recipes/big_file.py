"""`big`: one large file."""

from pathlib import Path

from fscost.workload.recipes.request import Request
from fscost.workload.recipes.text import text

_MIB = 1 << 20
_TEXT_BLOCKS = 4  # more than any file system or recording compresses at once, so that their repetition does not show


def make(folder: Path, request: Request) -> None:
    """`mib` MiB of `content`: random bytes (nothing compresses them), text, or zeros."""
    rng = request.rng("big-file")
    content = request.values["content"]
    blocks = [text(rng, _MIB) for _ in range(_TEXT_BLOCKS)] if content == "text" else [bytes(_MIB)]
    with (folder / "big").open("wb") as file:
        for i in range(request.number("mib")):
            file.write(rng.randbytes(_MIB) if content == "random" else blocks[i % len(blocks)])
