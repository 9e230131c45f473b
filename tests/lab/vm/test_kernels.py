"""Guest kernels from a fake archive, which apt reads and checks as it does the real one."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.vm.archive import KERNEL, Archive, Signer, files_of, image

from fscost.errors import HostError, InputError
from fscost.files import cache
from fscost.lab.vm import debian, kernels

BOOKWORM = ("bookworm", "bookworm-security")
TRIXIE = ("trixie", "trixie-security")
NEWER = ("trixie-backports", "sid")


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    # The folder's name is short because the path of a socket is limited to 107 bytes.
    home = Path(tempfile.mkdtemp(prefix="signer-"))
    try:
        signer = Signer(home)
        signer.make()
        yield signer
        signer.end()
    finally:
        shutil.rmtree(home)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signer: Signer) -> Archive:
    """An archive, in place of Debian's and of the host's mirror; the host has no kernels."""
    made = Archive(tmp_path / "archive", signer)
    monkeypatch.setattr(debian, "_archives", lambda: [(made.uri, f"{made.uri}-security")])
    monkeypatch.setattr(debian, "KEYRING", signer.keyring)
    monkeypatch.setattr(kernels, "BOOT", tmp_path / "boot")
    monkeypatch.setattr(kernels, "MODULES", tmp_path / "modules")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


def install(here: Path, release: str) -> Path:
    """Install a kernel on the host, and return its image."""
    path = here / "boot" / f"vmlinuz-{release}"
    (here / "modules" / release).mkdir(parents=True)
    (here / "modules" / release / "modules.builtin").write_text("kernel/x.ko\n")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(image())
    return path


def kept() -> list[str]:
    folder = cache.root() / "kernels"
    return [path.name for path in folder.iterdir() if path.name != ".lock"]


def test_the_newest_build_of_the_series_is_fetched_once_and_whole(archive: Archive) -> None:
    archive.add_kernel("trixie", "6.12.9+deb13-amd64", "6.12.9-1")
    archive.add_kernel("trixie-security", "6.12.10+deb13-amd64", "6.12.10-1")
    for variant in ("cloud-amd64", "rt-amd64", "amd64-dbg", "amd64-unsigned"):
        archive.add_kernel("trixie", f"6.12.99+deb13-{variant}", "6.12.99-1")
    archive.add_kernel("trixie", "6.120.1+deb13-amd64", "6.120.1-1")
    archive.publish(*TRIXIE)
    assert kernels.cached("6.12") is None
    kernel = kernels.fetch("6.12")
    assert (kernel.version, kernel.vmlinux.read_bytes()) == ("6.12.10+deb13-amd64", KERNEL)
    assert kernel.package == "linux-image-6.12.10+deb13-amd64 6.12.10-1"
    assert (kernel.modules / "modules.builtin").is_file()
    assert kept() == ["6.12"]
    shutil.rmtree(archive.base)
    assert kernels.fetch("6.12") == kernel == kernels.cached("6.12")


def test_a_series_whose_packages_have_other_numbers(archive: Archive) -> None:
    archive.add_kernel("bookworm", "6.1.0-9-amd64", "6.1.99-1")
    archive.add_kernel("bookworm-security", "6.1.0-50-amd64", "6.1.176-1")
    archive.add_kernel("bookworm-security", "6.12.95+deb12-amd64", "6.12.95-1~deb12u1")
    archive.publish(*BOOKWORM)
    kernel = kernels.fetch("6.1")
    assert kernel.version == "6.1.0-50-amd64"
    assert kernel.build == {
        "package": "linux-image-6.1.0-50-amd64 6.1.176-1",
        "vmlinux_sha256": cache.digests(kernel.vmlinux.parent)["vmlinux"],
    }


def test_a_kernel_in_several_packages(archive: Archive) -> None:
    """Since 6.19, Debian packages the image, the modules and their lists separately."""
    release, version = "7.3.4+deb13-amd64", "7.3.4-1~bpo13+1"
    folder = f"usr/lib/modules/{release}"
    parts = {
        "base": (f"{folder}/modules.builtin", b"kernel/x.ko\n"),
        "binary": (f"{folder}/vmlinuz", image()),
        "modules": (f"{folder}/kernel/y.ko", b"y"),
    }
    depends = ", ".join(f"linux-{part}-{release} (= {version})" for part in parts)
    suite = "trixie-backports"
    archive.add(suite, f"linux-image-{release}", version, {}, f"kmod | dracut, {depends}")
    for part, (path, content) in parts.items():
        archive.add(suite, f"linux-{part}-{release}", version, {path: content})
    archive.publish(*NEWER)
    kernel = kernels.fetch("7.3")
    assert (kernel.version, kernel.vmlinux.read_bytes()) == (release, KERNEL)
    assert (kernel.modules / "kernel" / "y.ko").is_file()


def test_a_series_that_the_archive_lacks_is_refused(archive: Archive) -> None:
    archive.add_kernel("bookworm", "6.12.9+deb12-amd64", "6.12.9-1")
    archive.publish(*BOOKWORM)
    with pytest.raises(InputError, match=r"'6\.1': Debian's archive has no such series") as error:
        kernels.fetch("6.1")
    assert "use one of 6.1, 6.12, or" in str(error.value)
    assert kept() == []


def test_a_package_of_another_series_is_refused(archive: Archive) -> None:
    archive.add("bookworm", "linux-image-6.1.0-9-amd64", "6.1.9-1", files_of("6.12.9-amd64"))
    archive.publish(*BOOKWORM)
    with pytest.raises(HostError, match=r"6\.1\.9-1 is Linux 6\.12\.9-amd64, not 6\.1"):
        kernels.fetch("6.1")
    assert kept() == []


def test_a_cached_kernel_of_another_series_is_replaced(archive: Archive) -> None:
    archive.add_kernel("trixie", "6.12.9+deb13-amd64", "6.12.9-1")
    archive.add_kernel("bookworm", "6.1.0-9-amd64", "6.1.9-1")
    archive.publish(*TRIXIE, *BOOKWORM)
    wrong = kernels.fetch("6.12").vmlinux.parent
    wrong.rename(wrong.with_name("6.1"))
    assert kernels.cached("6.1") is None
    said: list[str] = []
    assert kernels.fetch("6.1", said.append).version == "6.1.0-9-amd64"
    assert "(it is Linux 6.12.9+deb13-amd64); rebuilding it" in said[0]


@pytest.mark.parametrize("is_signed", [False, True])
def test_an_archive_without_debian_s_signature_is_refused(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_signed: bool
) -> None:
    archive.add_kernel("trixie", "6.12.9+deb13-amd64", "6.12.9-1")
    archive.publish(*TRIXIE, is_signed=is_signed)
    if is_signed:
        (tmp_path / "other.gpg").touch()
        monkeypatch.setattr(debian, "KEYRING", tmp_path / "other.gpg")
    with pytest.raises(HostError, match="not signed"):
        kernels.fetch("6.12")
    assert kept() == []


def test_without_the_keys_their_package_is_named(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "KEYRING", archive.base / "none")
    with pytest.raises(HostError, match="apt install debian-archive-keyring"):
        kernels.fetch("6.12")


def test_without_a_network_nothing_is_left(archive: Archive) -> None:
    with pytest.raises(HostError, match=r"(?s)`apt-get update` failed: E: .*check the network"):
        kernels.fetch("6.12")
    assert kept() == []


def test_without_a_network_an_installed_kernel_of_the_series_is_used(
    archive: Archive, tmp_path: Path
) -> None:
    install(tmp_path, "6.1.0-9-amd64")
    install(tmp_path, "6.12.10-amd64")
    install(tmp_path, "6.12.9-amd64")
    said: list[str] = []
    kernel = kernels.fetch("6.12", said.append)
    assert (kernel.version, kernel.package) == ("6.12.10-amd64", None)
    assert kernel.modules == tmp_path / "modules" / "6.12.10-amd64"
    assert "using Linux 6.12.10-amd64, which is installed here, because `apt-get up" in said[-1]
    with pytest.raises(HostError, match="apt-get update"):
        kernels.fetch("6.18")


def test_the_host_s_own_kernel(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = kernels.os.uname().release
    with pytest.raises(HostError, match=f"no image {tmp_path}/boot/vmlinuz-{release}"):
        kernels.fetch("host")
    path = install(tmp_path, release)
    kernel = kernels.fetch("host")
    assert (kernel.version, kernel.modules) == (release, tmp_path / "modules" / release)
    assert kernel.build["vmlinux_sha256"] is not None
    monkeypatch.setattr(kernels.os, "access", lambda *_: False)  # root may read any file
    with pytest.raises(HostError, match=f"{path} cannot be read by this user"):
        kernels.fetch("host")


def test_the_host_s_mirrors_come_before_debian_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apt(*lines: str) -> list[tuple[str, str]]:
        (tmp_path / "apt-get").write_text("#!/bin/sh\n" + "".join(f"echo '{x}'\n" for x in lines))
        (tmp_path / "apt-get").chmod(0o755)
        return debian._archives()

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    own = (debian.ARCHIVE, f"{debian.ARCHIVE}-security")
    ubuntu = "Ubuntu Ubuntu http://here/ubuntu/"
    assert apt() == apt(ubuntu, "Debian Debian cdrom:[12]/") == [own]
    mirror = "Debian Debian http://here/debian/"
    assert apt(ubuntu, mirror) == [("http://here/debian", own[1]), own]
    assert apt(mirror, "Debian Debian-Security http://there/s/") == [
        ("http://here/debian", "http://there/s"),
        own,
    ]


def test_a_mirror_that_lacks_a_release(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.add_kernel("trixie", "6.12.9+deb13-amd64", "6.12.9-1")
    archive.publish(*TRIXIE)
    mirror = (f"file://{archive.base}/mirror", f"file://{archive.base}/mirror")
    monkeypatch.setattr(
        debian, "_archives", lambda: [mirror, (archive.uri, archive.uri + "-security")]
    )
    assert kernels.fetch("6.12").version == "6.12.9+deb13-amd64"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file"), "apt-get: No such file"),
        (subprocess.TimeoutExpired("apt-get", 900), "timed out after 900 s"),
    ],
)
def test_a_program_that_is_missing_or_hangs(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(HostError, match=words):
        kernels.fetch("6.12")


def test_what_a_killed_one_left_goes(archive: Archive) -> None:
    left = cache.root() / "kernels" / ".making-abc"
    left.mkdir(parents=True)
    with pytest.raises(HostError):
        kernels.fetch("6.12")
    assert not left.exists()


def test_files_of_ones_own(archive: Archive, tmp_path: Path) -> None:
    path = install(tmp_path, "6.12.9-test")
    tree = tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tmp_path / "modules").rename(tree / "lib" / "modules")
    kernel = kernels.of_files(path, tree)
    assert kernel.modules == tree / "lib" / "modules" / "6.12.9-test"
    assert kernel.vmlinux.read_bytes() == KERNEL
    assert kernel.version == "6.12.9-test"
    assert kernels.of_files(path, kernel.modules) == kernel
    path.write_bytes(KERNEL + b"built again")
    assert kernels.of_files(path, tree).vmlinux.read_bytes() == KERNEL + b"built again"


@pytest.mark.parametrize(
    ("name", "modules", "words"),
    [("none", "modules", "No such file"), ("vmlinuz-6.12.9-test", "boot", "no modules.builtin")],
)
def test_files_that_are_no_kernel(
    archive: Archive, tmp_path: Path, name: str, modules: str, words: str
) -> None:
    install(tmp_path, "6.12.9-test")
    with pytest.raises(InputError, match=words):
        kernels.of_files(tmp_path / "boot" / name, tmp_path / modules)


@pytest.mark.parametrize("name", ["5.4", "6", "6.12.9", "../6.1", "linux", ""])
def test_an_unknown_kernel_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown guest kernel .*\n.*such as 6\.12"):
        kernels.fetch(name)


def test_the_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.root() == Path("/somewhere/fscost")
