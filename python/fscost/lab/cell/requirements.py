"""Why a cell cannot run here, and what would enable it: a skip is loud, and says what to type."""

from collections.abc import Callable

from fscost.errors import InputError
from fscost.host import install_command, missing_tools
from fscost.matrix import Cell
from fscost.profile import plan_format
from fscost.profile import why_not as why_no_profile
from fscost.profile.model import FormatPlan, Profile

PlanFormat = Callable[[Profile, int, int], FormatPlan]
"""Profile, size of its disks in bytes, seed."""


def plan_of(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
    """What mkfs and mount are told: the `PlanFormat` of every lab, except in tests."""
    return plan_format(profile, disk_size_bytes=disk_size_bytes, seed=seed)


def why_not(
    cell: Cell,
    disk_size_bytes: int | None,
    plan_format: PlanFormat,
    why_no_type: Callable[[str], str | None],
) -> str | None:
    """None when the cell can run. Without a disk size, the smallest that the workload fits on is
    assumed.

    `why_no_type` says why the lab's kernel does not mount a type.
    """
    profile, workload = cell.profile, cell.workload
    if workload.only_types and profile.type not in workload.only_types:
        return f"workload {workload.name} runs on {', '.join(workload.only_types)} only, not on {profile.type}"
    unknown = why_no_profile(profile)
    if unknown is not None:
        return unknown
    size_bytes = workload.disk_bytes if disk_size_bytes is None else disk_size_bytes
    if size_bytes < workload.disk_bytes:
        return (
            f"a disk of {size_bytes / 2**20:.0f} MiB is too small: workload {workload.name} needs {workload.disk_bytes / 2**20:.0f} MiB; "
            f"give --size {-(-workload.disk_bytes // 2**20)}M or more"
        )
    try:
        formatted = plan_format(profile, size_bytes, cell.seed)
    except InputError as error:
        return " ".join(str(error).split())
    return (
        why_no_type(formatted.mount_type)
        or _tools(profile.name, formatted.needs_tools)
        or _tools(workload.name, workload.needs_tools)
    )


def _tools(needed_by: str, tools: tuple[str, ...]) -> str | None:
    missing = missing_tools(tools)
    if not missing:
        return None
    verb = "is" if len(missing) == 1 else "are"
    return f"{', '.join(missing)} {verb} missing, which {needed_by} needs; `{install_command(missing)}`"
