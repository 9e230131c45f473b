"""Fetching of kernels, with a hand-made package in place of the distribution's."""

import lzma
import struct
import subprocess
from pathlib import Path

import pytest

from fscost.errors import HostError, InputError
from fscost.lab.vm import cache, kernels

KERNEL = b"\x7fELF" + bytes(4000)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install an `apt-cache` and `apt-get` that offer one kernel, a real .deb, and log each
    call."""
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: linux-image-6.12.9-test\nVersion: 1\nArchitecture: all\nMaintainer: a"
        " <a@b.c>\nDescription: x\n"
    )
    (tree / "boot").mkdir()
    packed = lzma.compress(KERNEL) + struct.pack("<I", len(KERNEL))
    setup = bytearray(1024)
    setup[0x1F1] = 1
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", setup, 0x248, 0, len(packed))
    (tree / "boot" / "vmlinuz-6.12.9-test").write_bytes(bytes(setup) + packed)
    modules = tree / "lib" / "modules" / "6.12.9-test"
    modules.mkdir(parents=True)
    (modules / "modules.builtin").write_text("kernel/x.ko\n")
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", tree, tmp_path / "kernel.deb"],
        check=True,
        capture_output=True,
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "apt-cache").write_text(
        '#!/bin/sh\necho "linux-image-6.12-amd64"\necho "  Depends: linux-image-6.12.9-test"\n'
    )
    (programs / "apt-get").write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\ntest -e {tmp_path}/offline && {{ echo "no'
        f' network" >&2; exit 100; }}\ncp {tmp_path}/kernel.deb ./$2.deb\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_kernel_is_fetched_once_and_whole(distribution: Path) -> None:
    assert kernels.cached("6.12") is None
    kernel = kernels.fetch("6.12")
    assert (kernel.version, kernel.vmlinux.read_bytes()) == ("6.12.9-test", KERNEL)
    assert (kernel.modules / "modules.builtin").is_file()
    assert kernels.fetch("6.12") == kernel == kernels.cached("6.12")
    assert (distribution / "calls").read_text() == "download linux-image-6.12.9-test\n"
    assert kept(distribution) == ["6.12"]


def test_a_package_of_merged_usr(distribution: Path) -> None:
    tree = distribution / "tree"
    (tree / "usr").mkdir()
    (tree / "lib").rename(tree / "usr" / "lib")
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", tree, distribution / "kernel.deb"],
        check=True,
        capture_output=True,
    )
    assert (kernels.fetch("6.12").modules / "modules.builtin").is_file()


def test_without_a_network_nothing_is_left(distribution: Path) -> None:
    (distribution / "offline").touch()
    with pytest.raises(HostError, match="no network"):
        kernels.fetch("6.12")
    assert kept(distribution) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file"), "apt-cache: .*No such file"),
        (subprocess.TimeoutExpired("apt-cache", 900), "timed out after 900 s"),
    ],
)
def test_a_program_that_is_missing_or_hangs(
    distribution: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(HostError, match=words):
        kernels.fetch("6.12")


def test_what_a_killed_one_left_goes(distribution: Path) -> None:
    left = distribution / "cache" / "fscost" / "kernels" / ".making-abc"
    left.mkdir(parents=True)
    kernels.fetch("6.12")
    assert not left.exists()


def test_files_of_ones_own(distribution: Path) -> None:
    tree = distribution / "tree"
    kernel = kernels.of_files(tree / "boot" / "vmlinuz-6.12.9-test", tree)
    assert kernel.modules == tree / "lib" / "modules" / "6.12.9-test"
    assert kernel.vmlinux.read_bytes() == KERNEL
    assert kernel.version == "6.12.9-test"
    assert kernels.of_files(tree / "boot" / "vmlinuz-6.12.9-test", kernel.modules) == kernel
    (tree / "boot" / "vmlinuz-6.12.9-test").write_bytes(KERNEL + b"built again")
    assert (
        kernels.of_files(tree / "boot" / "vmlinuz-6.12.9-test", tree).vmlinux.read_bytes()
        == KERNEL + b"built again"
    )


@pytest.mark.parametrize(
    ("image", "modules", "words"),
    [("none", "", "No such file"), ("boot/vmlinuz-6.12.9-test", "boot", "no modules.builtin")],
)
def test_files_that_are_no_kernel(distribution: Path, image: str, modules: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        kernels.of_files(distribution / "tree" / image, distribution / "tree" / modules)


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(InputError, match=r"6\.12, 6\.1"):
        kernels.fetch("5.4")


def test_the_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.root() == Path("/somewhere/fscost")


def kept(distribution: Path) -> list[str]:
    return [
        path.name
        for path in (distribution / "cache" / "fscost" / "kernels").iterdir()
        if path.name != ".lock"
    ]
