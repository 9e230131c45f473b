"""Seeded UUIDs: cells of one seed have the same UUIDs."""

from dataclasses import replace

from fscost.profile.families.common import seeded_uuid
from fscost.profile.model import FormatPlan


def with_seeded_uuid(formatted: FormatPlan, seed: int) -> FormatPlan:
    """Give mkfs.xfs a UUID derived from the seed. In a guest, no other xfs that could have the same
    UUID is mounted.

    A random UUID would change the bytes written: xfs stores it in every metadata block, and its
    checksums reach the log.
    """
    uuid = ("-m", f"uuid={seeded_uuid(seed, 'file system')}")

    def seeded(command: tuple[str, ...]) -> tuple[str, ...]:
        is_random = command[0] == "mkfs.xfs" and not any("uuid=" in word for word in command)
        return (command[0], *uuid, *command[1:]) if is_random else command

    return replace(formatted, mkfs=tuple(map(seeded, formatted.mkfs)))
