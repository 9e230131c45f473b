"""Availability of programs and file systems, and the packages that provide missing ones."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fscost.profile.packages import package_of


def search_path() -> str:
    """PATH with the administrator's folders added: after `su`, an ordinary user's PATH lacks the
    folder of mkfs."""
    parts = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    parts += [folder for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin") if folder not in parts]
    return os.pathsep.join(parts)


def tool(name: str) -> Path | None:
    """Find the path of a program; None if it is not installed."""
    found = shutil.which(name, path=search_path())
    return None if found is None else Path(found)


def missing_tools(names: Iterable[str]) -> list[str]:
    """Return those of `names` that are not installed, in order and without duplicates."""
    return [name for name in dict.fromkeys(names) if tool(name) is None]


def install_command(tools: Iterable[str]) -> str:
    """Return the command that installs `tools`."""
    return f"apt install {' '.join(dict.fromkeys(map(package_of, tools)))}"


def kernel_has(file_system: str) -> bool:
    """True if mount(2) would find the type: built in, loaded, or a module that the kernel would
    load by its alias `fs-TYPE`."""
    known = Path("/proc/filesystems").read_text().splitlines()
    if any(line.split()[-1] == file_system for line in known):
        return True
    modprobe = tool("modprobe")
    if modprobe is None:
        return False
    answer = subprocess.run(
        [modprobe, "-n", "-q", f"fs-{file_system}"], capture_output=True, check=False
    )
    return answer.returncode == 0
