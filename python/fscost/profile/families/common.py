"""What the families share."""

import hashlib
import uuid

from fscost.errors import InputError
from fscost.profile.model import Profile

MIB = 1 << 20


def seeded_uuid(seed: int, purpose: str) -> str:
    """A UUID that depends on nothing but these."""
    digest = hashlib.sha256(f"fscost/{seed}/{purpose}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def require_size(profile: Profile, main_bytes: int, minimum_bytes: int, source: str) -> None:
    """Refuse a disk that mkfs would refuse, before anything runs."""
    if main_bytes < minimum_bytes:
        raise InputError(
            f"profile '{profile.name}': a disk of {main_bytes / MIB:.0f} MiB is too small for {profile.type} ({source})",
            f"give it at least {minimum_bytes / MIB:.0f} MiB with --size",
        )


def tools_of(*groups: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The programs named by these commands, each once."""
    return tuple(dict.fromkeys(command[0] for group in groups for command in group))


def join_options(*options: str) -> str:
    """Mount options joined by comma, empty ones left out."""
    return ",".join(option for option in options if option)
