"""Reasons why a cell cannot run here, each with the command or option that would enable it."""

import shutil
from collections.abc import Callable

from fscost.errors import InputError
from fscost.host import install_command, missing_tools
from fscost.matrix import Cell
from fscost.profile import unsupported_reason as unsupported_profile_reason
from fscost.profile.model import FormatPlan, Profile

PlanFormat = Callable[[Profile, int, int], FormatPlan]
"""Function of a profile, the size of its disks in bytes, and a seed."""


def unsupported_reason(
    cell: Cell,
    disk_size_bytes: int | None,
    plan_format: PlanFormat,
    unsupported_type_reason: Callable[[str], str | None],
    search_path: str | None = None,
) -> str | None:
    """Return None if the cell can run, otherwise the reason. Without a disk size, the smallest disk
    that fits the workload is assumed.

    `unsupported_type_reason` says why the lab's kernel does not mount a type. `search_path`: PATH
    in the lab, unless it is the caller's.
    """
    profile, workload = cell.profile, cell.workload
    if workload.only_types and profile.type not in workload.only_types:
        return (
            f"workload {workload.name} runs on {', '.join(workload.only_types)} only, not on"
            f" {profile.type}"
        )
    unknown = unsupported_profile_reason(profile)
    if unknown is not None:
        return unknown
    size_bytes = workload.disk_bytes if disk_size_bytes is None else disk_size_bytes
    if size_bytes < workload.disk_bytes:
        return (
            f"a disk of {size_bytes / 2**20:.0f} MiB is too small: workload {workload.name} needs"
            f" {workload.disk_bytes / 2**20:.0f} MiB; give --size"
            f" {-(-workload.disk_bytes // 2**20)}M or more"
        )
    try:
        formatted = plan_format(profile, size_bytes, cell.seed)
    except InputError as error:
        return " ".join(str(error).split())
    return (
        unsupported_type_reason(formatted.mount_type)
        or _tools(profile.name, formatted.needs_tools, search_path)
        or _tools(workload.name, workload.needs_tools, search_path)
    )


def _tools(needed_by: str, tools: tuple[str, ...], search_path: str | None) -> str | None:
    missing = missing_tools(tools)
    if not missing:
        for name in tools if search_path else ():
            if shutil.which(name, path=search_path) is None:
                return (
                    f"{needed_by} needs {name}, and guests search programs in {search_path} only;"
                    " link it from there, or use `--lab native`"
                )
        return None
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"{needed_by} needs {', '.join(missing)}, which {verb} missing;"
        f" `{install_command(missing)}`"
    )
