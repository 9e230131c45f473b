"""Location of fscost's own programs."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError


@dataclass(frozen=True)
class Binaries:
    """Paths of the agent, which runs one cell, and of the server of its recorded disks."""

    agent: Path
    disk: Path


def find_binaries() -> Binaries:
    """Find the programs beside the running Python, else where `make setup` puts them in a checkout,
    else on PATH. Cargo's folder is not searched: an agent there may be outdated, and is not
    static."""
    return Binaries(agent=_find("fscost-agent"), disk=_find("fscost-disk"))


def _find(name: str) -> Path:
    for candidate in _candidates(name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise HostError(f"{name} was not found", "run `make setup` in the checkout, or put it on PATH")


def _candidates(name: str) -> list[Path]:
    # Not resolved: .venv/bin/python is a link to the system's Python, and fscost's programs lie
    # beside the link.
    candidates = [Path(sys.executable).parent / name]
    candidates += [
        parent / ".venv/bin" / name
        for parent in Path(__file__).resolve().parents
        if (parent / "Cargo.toml").is_file()
    ]
    on_path = shutil.which(name)
    if on_path is not None:
        candidates.append(Path(on_path).absolute())
    return candidates
