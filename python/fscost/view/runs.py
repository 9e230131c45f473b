"""Runs of a folder, each with its answer."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fscost.errors import FscostError, InputError
from fscost.results import MANIFEST, RunResults, load
from fscost.view.grid import plain
from fscost.view.run import answer


@dataclass(frozen=True)
class Listed:
    """A run of a folder. For an unreadable run, the answer is the reason, and the other fields are
    empty."""

    folder: Path
    answer: str
    title: str = ""
    started_utc: str = ""
    lab: str = ""
    profiles: tuple[str, ...] = ()
    is_readable: bool = True

    @property
    def name(self) -> str:
        """Name of the folder, in printable form."""
        return plain(os.fsencode(self.folder.name).decode("utf-8", "replace"))

    @property
    def key(self) -> str:
        """Name of the folder in addresses. A folder's name is a byte string, which an address must
        encode."""
        return key(os.fsencode(self.folder.name))


def key(name: bytes) -> str:
    """Encode a name as part of an address, in one canonical form."""
    return quote(name, safe="")


def listed(folder: Path, *, trust: bool) -> list[Listed]:
    """List the runs directly below a folder, by name, without links. InputError if it is not a
    folder."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder",
            "name the folder that holds runs, or start one: fscost compare",
        )
    found = sorted(
        each for each in folder.iterdir() if not each.is_symlink() and (each / MANIFEST).is_file()
    )
    return [_listed(each, trust=trust) for each in found]


def _listed(folder: Path, *, trust: bool) -> Listed:
    """Return the run's answer, or why it cannot be read, so that one bad run does not hide
    others."""
    try:
        results = load(folder, trust=trust)
    except FscostError as error:
        return Listed(folder, plain(f"unreadable: {error.what}"), is_readable=False)
    manifest = results.manifest
    return Listed(
        folder,
        f"{_state(results)}{answer(results) or 'no cell finished'}",
        plain(manifest.name),
        plain(manifest.started_utc),
        plain(manifest.lab),
        tuple(map(plain, manifest.profile_names)),
    )


def _state(results: RunResults) -> str:
    state = results.manifest.state
    return "" if state == "finished" else f"({state}) "
