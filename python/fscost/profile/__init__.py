"""Profiles: from their spelling to what is formatted and mounted."""

import re
from dataclasses import replace

from fscost.errors import InputError, did_you_mean
from fscost.profile.array import on_array, without_array
from fscost.profile.braces import Expansion, expand
from fscost.profile.design import FULL, described, expand_all
from fscost.profile.disks import parse_disk, with_run_disks
from fscost.profile.families import (
    LATER,
    UNSUPPORTED,
    family_of,
    formattable_types,
    known_types,
)
from fscost.profile.flags import split_flags
from fscost.profile.kernels import on_kernels
from fscost.profile.load import load_catalogue, read_profile
from fscost.profile.misspelt import suggestion
from fscost.profile.model import DiskSpec, FormatPlan, Profile
from fscost.profile.spelling import extend, split_words

__all__ = [
    "FULL",
    "DiskSpec",
    "Expansion",
    "FormatPlan",
    "Profile",
    "catalogue",
    "described",
    "expand",
    "expand_all",
    "on_kernels",
    "parse_disk",
    "plan_format",
    "read_profile",
    "resolve",
    "suggestion",
    "unsupported_reason",
    "with_run_disks",
]


def catalogue() -> list[Profile]:
    """Return all named profiles."""
    return list(load_catalogue())


_LABEL = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9_.-]*)=(\S.*)", re.DOTALL)
"""A name of the user's, and the spelling that it stands for."""


def resolve(text: str) -> Profile:
    """Parse the spelling of a profile: a name of the catalogue or a type, then flags of its mkfs,
    `-o` mount options, and `on md` with an array. `NAME=` before it names the profile in
    tables."""
    if (labelled := _LABEL.match(text)) is not None:
        label, spelled = labelled.groups()
        known = {profile.name for profile in catalogue()} | set(known_types())
        if label in known:
            raise InputError(
                f"profile '{text}': {label} is already a file system or profile",
                f"choose another name, as in my-{label}={spelled}",
            )
        return replace(resolve(spelled), name=label)
    words = split_words(text)
    first, rest = words[0], words[1:]
    named = {profile.name: profile for profile in catalogue()}
    if first in named and not rest:
        return named[first]
    if first not in named and first not in known_types():
        close = did_you_mean(first, [*named, *formattable_types()])
        types = f"types: {', '.join(formattable_types())}"
        remedy = types if close is None or first in UNSUPPORTED else close
        if "," in first and {*first.split(",")} <= {*named, *known_types()}:
            remedy = " ".join(f"--on {each}" for each in first.split(","))
            remedy = f"give each its own --on: {remedy}"
        raise InputError(
            f"profile '{text}': no file system or profile is called '{first}'",
            f"{remedy} (`fscost profiles` lists all)",
        )
    base = named.get(first, Profile(first, first))
    name = " ".join(text.split())
    try:
        return extend(base, name, rest)
    except InputError as error:
        raise InputError(f"profile '{name}': {error.what}", error.remedy) from None


def unsupported_reason(profile: Profile) -> str | None:
    """Return why no lab of this version can format `profile`, or None. A lab skips the cell with
    this message."""
    if family_of(profile.type) is not None:
        return None
    tool = LATER.get(profile.type, f"mkfs.{profile.type}")
    return (
        f"{profile.type}: fscost cannot format it yet; it needs {tool}, kernel support and a later"
        " version of fscost"
    )


def plan_format(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
    """Plan every command that makes and mounts `profile`. `disk_size_bytes` is the size of disks
    that do not set their own."""
    family = family_of(profile.type)
    if family is None:
        raise InputError(
            f"profile '{profile.name}': {unsupported_reason(profile)}",
            f"use {', '.join(formattable_types())}",
        )
    flags, _ = split_flags(family.grammar(profile.type), profile.mkfs_flags)
    main = profile.disks[0]
    plan = family.plan(without_array(profile), flags, main.size_bytes or disk_size_bytes, seed)
    return plan if profile.array is None else on_array(plan, profile.array, seed)
