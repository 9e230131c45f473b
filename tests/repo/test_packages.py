"""Remedies name packages that exist: each is looked up in apt's lists, and each tool that is
installed here in the package that it came from."""

import functools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost import profile, study, workload
from fscost.host.conditions import _WORKLOAD_TOOLS
from fscost.lab.vm import qemu
from fscost.profile.families import mkfs_programs
from fscost.profile.packages import PACKAGES, package_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")
_INSTALL = re.compile(r"apt(?:-get)? install((?: [a-z0-9][a-z0-9.+-]+)+)")


def tools() -> set[str]:
    """Every program whose absence fscost reports."""
    planned = (
        profile.plan_format(each, 4 << 30, 0).needs_tools
        for each in profile.catalogue()
        if profile.unsupported_reason(each) is None
    )
    return {
        qemu.PROGRAM,
        *PACKAGES,
        *mkfs_programs().values(),
        *_WORKLOAD_TOOLS,
        *(tool for each in workload.catalogue() for tool in each.needs_tools),
        *(tool for needed in planned for tool in needed),
    }


def named() -> Iterator[tuple[str, str]]:
    """Yield each package that a remedy names, and where."""
    yield from ((package_of(tool), f"package_of({tool!r})") for tool in sorted(tools()))
    for each in study.catalogue():
        for scale in each.scales.values():
            yield from ((need.package, f"study {each.name}") for need in scale.needs)
    lists = subprocess.run(
        ["git", "ls-files", "*.py", "*.rs", "*.toml", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in lists.stdout.split():
        for found in _INSTALL.finditer((ROOT / name).read_text()):
            yield from ((package, name) for package in found[1].split())
    # It names rustup, too, but only if apt has it.
    setup = (ROOT / "tools" / "setup-system").read_text()
    for group in re.findall(r"^ *packages\+?=\((.*?)\)", setup, re.DOTALL | re.MULTILINE):
        yield from ((package, "tools/setup-system") for package in re.findall(r"[^\s']+", group))


@functools.cache
def packages() -> frozenset[str]:
    """The names in apt's lists."""
    if shutil.which("apt-cache") is None:
        pytest.skip("apt-cache is missing: this is neither Debian nor Ubuntu")
    told = subprocess.run(["apt-cache", "pkgnames"], check=True, capture_output=True, text=True)
    found = frozenset(told.stdout.split())
    # Without lists, apt knows only what is installed. Debian has more than 60,000 packages.
    if len(found) < 10_000:
        pytest.skip(f"apt's lists are missing ({len(found)} packages): run `apt-get update`")
    return found


def test_every_package_that_a_remedy_names_exists() -> None:
    assert {package: place for package, place in named() if package not in packages()} == {}


def test_every_tool_comes_from_its_package() -> None:
    if shutil.which("dpkg-query") is None:
        pytest.skip("dpkg-query is missing: this is neither Debian nor Ubuntu")
    assert {
        tool: (package_of(tool), owner)
        for tool, owner in owners().items()
        if owner != package_of(tool) and owner not in brought(package_of(tool))
    } == {}


def owners() -> dict[str, str]:
    """Return the package of each installed tool."""
    paths = [f"{folder}/{tool}" for folder in FOLDERS for tool in sorted(tools())]
    command = ["dpkg-query", "--search", *paths]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^([^ :]+)(?::\w+)?: (\S+)$", told, re.MULTILINE)
    return {Path(path).name: package for package, path in found}


@functools.cache
def brought(package: str) -> set[str]:
    """Return the packages that this one depends on, such as postgresql-client-common."""
    command = ["apt-cache", "depends", "--recurse", "--important", package]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"^([a-z0-9]\S*)", told, re.MULTILINE))
