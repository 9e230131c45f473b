"""Combinations of a sweep that mkfs or mount refuses: they are skipped, and do not fail the run."""

import re

from fscost.lab.base import CellResult
from fscost.results import Manifest

_KINDS = ("mkfs", "mount")
_WORDS = re.compile(
    r"`[^`]*` exited with status \d+: (?P<tool>.+)"
    r"|mount -t \S+ .*?/dev/\S+(?: \((?P<kernel>.+)\))?: (?P<error>[^:\n]+)"
    r"(?:\nthe kernel said: (?P<log>.+))?",
    re.DOTALL,
)
"""Words of the agent about a refusal by mkfs, and by mount(2)."""
_DEVICE = re.compile(r" \([a-z]+\d*\):")


def refusal(result: CellResult, manifest: Manifest) -> str | None:
    """Return the words of mkfs or the kernel if it refused a combination of a sweep, without the
    command, which differs between combinations. None for any other result."""
    profile = result.cell.profile
    if result.status != "failed" or result.kind not in _KINDS or not profile.sweep:
        return None
    if any(kept.profile == profile.name for kept in manifest.done):
        return None  # it worked before
    found = _WORDS.fullmatch(result.because)
    words = result.because
    if found is not None:
        words = found["tool"] or found["log"] or found["kernel"] or found["error"]
    return f"{result.kind} refuses it: {_DEVICE.sub(':', words)}"
