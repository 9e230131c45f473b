"""Mount options of a profile in a manifest, which is untrusted."""

import re

from fscost.errors import InputError

_OF_DEVICES = ("device", "jdev", "journal_dev", "journal_path", "logdev", "loop", "rtdev")
_OWN = re.compile(r"\{disk\.[a-z][a-z0-9]*\}")
"""A disk of the profile, as profiles spell it."""
_OF_PATHS = ("subvol",)
"""Options that name a path in the file system itself."""


def without_devices(options: str) -> str:
    """Return the options without those that name the profile's own disks: who mounts a state names
    them anew. InputError if one names any other device or path, which would be this machine's."""
    kept = []
    for option in filter(None, options.split(",")):
        name, _, value = option.partition("=")
        if name in _OF_DEVICES and _OWN.fullmatch(value):
            continue
        if name in _OF_DEVICES or ("/" in option and name not in _OF_PATHS):
            raise InputError(
                f"the mount option {option!r} of the run's manifest names a device or a path",
                "do not use this run: fscost did not write that",
            )
        kept.append(option)
    return ",".join(kept)
