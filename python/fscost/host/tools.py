"""Programs and file systems: is it here, and if not, what brings it."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fscost.profile.packages import package_of


def search_path() -> str:
    """PATH with the administrator's folders added: a plain user's PATH under `su` lacks the folder
    that mkfs lies in."""
    parts = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    parts += [folder for folder in ("/usr/local/sbin", "/usr/sbin", "/sbin") if folder not in parts]
    return os.pathsep.join(parts)


def tool(name: str) -> Path | None:
    """Where a program lies."""
    found = shutil.which(name, path=search_path())
    return None if found is None else Path(found)


def missing_tools(names: Iterable[str]) -> list[str]:
    """Those of `names` that are not installed, in their order, each once."""
    return [name for name in dict.fromkeys(names) if tool(name) is None]


def install_command(tools: Iterable[str]) -> str:
    """What a person types to get `tools`."""
    return f"apt install {' '.join(dict.fromkeys(map(package_of, tools)))}"


def kernel_has(file_system: str) -> bool:
    """Whether mount(2) would find the type: built in, loaded, or a module that the kernel would
    load by its alias `fs-TYPE`."""
    for line in Path("/proc/filesystems").read_text().splitlines():
        if line.split()[-1] == file_system:
            return True
    modprobe = tool("modprobe")
    if modprobe is None:
        return False
    answer = subprocess.run(
        [modprobe, "-n", "-q", f"fs-{file_system}"], capture_output=True, check=False
    )
    return answer.returncode == 0
