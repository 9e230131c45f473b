"""The host's privileges, devices, file systems and tools, for the native lab and `fscost
doctor`."""

from fscost.host.conditions import (
    Check,
    FrontEnd,
    base_directory,
    checks,
    front_end,
    owns_machine,
    require,
    required_checks,
)
from fscost.host.machine import (
    environment,
    existing,
    folder_facts,
    fscost_version,
    memory_bytes,
    mounts,
)
from fscost.host.tools import install_command, kernel_has, missing_tools, search_path, tool

__all__ = [
    "Check",
    "FrontEnd",
    "base_directory",
    "checks",
    "environment",
    "existing",
    "folder_facts",
    "front_end",
    "fscost_version",
    "install_command",
    "kernel_has",
    "memory_bytes",
    "missing_tools",
    "mounts",
    "owns_machine",
    "require",
    "required_checks",
    "search_path",
    "tool",
]
