"""`big`: one large file; `tree.zip`: many small ones."""

import zipfile
from pathlib import Path

from fscost.workload.recipes import tree
from fscost.workload.recipes.request import Request

_MIB = 1 << 20
_MADE = (2009, 1, 1, 0, 0, 0)
_DIRECTORY, _FILE = 0o40755 << 16, 0o100644 << 16


def make(folder: Path, request: Request) -> None:
    """Make `big_mib` MiB of random bytes, which no file system compresses, and an archive of the
    files that recipe `tree` makes."""
    rng = request.rng("big-file")
    with (folder / "big").open("wb") as file:
        for _ in range(request.number("big_mib")):
            file.write(rng.randbytes(_MIB))
    with zipfile.ZipFile(folder / "tree.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in tree.entries(request):
            entry = zipfile.ZipInfo(f"{name}/" if content is None else name, _MADE)
            entry.external_attr = _DIRECTORY if content is None else _FILE
            archive.writestr(
                entry,
                content or b"",
                zipfile.ZIP_STORED if content is None else zipfile.ZIP_DEFLATED,
            )
