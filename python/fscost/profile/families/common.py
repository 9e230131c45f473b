"""Functions that the families share."""

import hashlib
import uuid

from fscost.errors import InputError
from fscost.profile.model import FormatPlan, Profile

MIB = 1 << 20


def seeded_uuid(seed: int, purpose: str) -> str:
    """Derive a UUID from only the seed and the purpose."""
    digest = hashlib.sha256(f"fscost/{seed}/{purpose}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def formats_nothing(program: str, *flags: str) -> dict[str, str]:
    """Remedies for flags with which a mkfs makes no file system."""
    return dict.fromkeys(flags, f"drop it: with it, {program} makes no file system")


def require_size(profile: Profile, main_bytes: int, minimum_bytes: int, source: str) -> None:
    """Refuse a disk that mkfs would refuse, before anything runs."""
    if main_bytes < minimum_bytes:
        raise InputError(
            f"profile '{profile.name}': a disk of {main_bytes / MIB:.0f} MiB is too small for"
            f" {profile.type} ({source})",
            f"give it at least {minimum_bytes / MIB:.0f} MiB with --size",
        )


def format_plan(
    profile: Profile,
    *mkfs: tuple[str, ...],
    superblock: tuple[str, ...],
    mount_options: str | None = None,
    sync_tracepoints: tuple[str, ...] = (),
) -> FormatPlan:
    """Combine the commands of a family with those of the profile. `superblock` shows what was
    really made."""
    commands = (*mkfs, *profile.after_mkfs)
    groups = (commands, profile.after_mount, profile.background, (superblock,))
    return FormatPlan(
        mkfs=commands,
        mount_type=profile.type,
        mount_device="{disk.main}",
        mount_options=profile.mount_options if mount_options is None else mount_options,
        after_mount=profile.after_mount,
        background=profile.background,
        inspect=(("superblock", superblock),),
        sync_tracepoints=sync_tracepoints,
        needs_tools=tuple(dict.fromkeys(command[0] for group in groups for command in group)),
    )


def join_options(*options: str) -> str:
    """Join mount options by commas, leaving out empty ones."""
    return ",".join(option for option in options if option)
