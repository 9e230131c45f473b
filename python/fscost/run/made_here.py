"""Notes of which recordings the native lab of this machine made for this user.

The kernel mounts disks of a recording only if it is noted: others may attack it. The notes are in
the user's cache, which nobody else can write to. They are digests, so that a copy of a run, or a
run folder that moved, is known as well, and one that was changed is not.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fscost import files
from fscost.errors import FscostError
from fscost.files import cache

_FOLDER, _FILE = "recordings", "made-here"
_MOST = 10_000
"""Digests that are kept: the newest."""
_LONGEST_BYTES = 128 * _MOST


def note(profile: Mapping[str, Any], recording_sha256: str) -> None:
    """Note a recording that was made just now, and the manifest's entry about its profile. Without
    a cache there is no note, which only means that guests examine the recording."""
    with suppress(FscostError, OSError), cache.private(_folder()) as folder:
        known = [*_known(folder), _digest(profile, recording_sha256)]
        with files.replacing(folder / _FILE, follow=False) as file:
            file.write("".join(f"{each}\n" for each in known[-_MOST:]).encode())


def is_noted(profile: Mapping[str, Any], recording: Path) -> bool:
    """True if this recording, made with this profile, was noted."""
    with suppress(FscostError, OSError):
        folder = _folder()
        cache.refuse_writable_by_others(folder)
        known = _known(folder)
        with files.open_regular(recording) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return _digest(profile, found) in known
    return False


def _folder() -> Path:
    return cache.root() / _FOLDER


def _known(folder: Path) -> list[str]:
    try:
        with files.open_regular(folder / _FILE) as file:
            content = files.content(file, _LONGEST_BYTES)
    except FileNotFoundError:
        return []
    return (content or b"").decode(errors="replace").split()


def _digest(profile: Mapping[str, Any], recording_sha256: str) -> str:
    """Digest of what the kernel gets: the disks, and how they are made and mounted."""
    text = json.dumps([recording_sha256, profile], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
