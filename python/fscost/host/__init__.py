"""The host's privileges, devices, file systems and tools, for the native lab and `fscost
doctor`."""

from fscost.host.conditions import (
    Check,
    FrontEnd,
    base_directory,
    checks,
    front_end,
    require,
    required_checks,
)
from fscost.host.machine import environment, folder_facts, memory_bytes
from fscost.host.tools import install_command, kernel_has, missing_tools, search_path, tool

__all__ = [
    "Check",
    "FrontEnd",
    "base_directory",
    "checks",
    "environment",
    "folder_facts",
    "front_end",
    "install_command",
    "kernel_has",
    "memory_bytes",
    "missing_tools",
    "require",
    "required_checks",
    "search_path",
    "tool",
]
