"""A fake archive of Debian in a folder, signed with a key of its own."""

import hashlib
import lzma
import os
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KERNEL = b"\x7fELF" + bytes(4000)


def image() -> bytes:
    """Return a bzImage of KERNEL."""
    packed = lzma.compress(KERNEL) + struct.pack("<I", len(KERNEL))
    setup = bytearray(1024)
    setup[0x1F1] = 1
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", setup, 0x248, 0, len(packed))
    return bytes(setup) + packed


def files_of(release: str) -> dict[str, bytes]:
    """Return the files of a kernel's package."""
    return {
        f"boot/vmlinuz-{release}": image(),
        f"lib/modules/{release}/modules.builtin": b"kernel/x.ko\n",
    }


@dataclass(frozen=True)
class Signer:
    """A key, made by gpg in a folder of its own."""

    home: Path

    def gpg(self, *words: str, given: bytes = b"") -> bytes:
        command = ["gpg", "--batch", "--quiet", "--pinentry-mode=loopback", "--passphrase=", *words]
        environment = os.environ | {"GNUPGHOME": str(self.home)}
        return subprocess.run(
            command, env=environment, input=given, check=True, capture_output=True
        ).stdout

    def make(self) -> None:
        self.gpg("--quick-gen-key", "an archive", "ed25519", "sign", "never")
        self.keyring.write_bytes(self.gpg("--export"))

    @property
    def keyring(self) -> Path:
        return self.home / "archive.gpg"

    def end(self) -> None:
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], check=True)


@dataclass
class Archive:
    """The folders `debian` and `debian-security` below `base`."""

    base: Path
    signer: Signer
    _stanzas: dict[str, list[str]] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"file://{self.base}/debian"

    def add(
        self, suite: str, name: str, version: str, files: Mapping[str, bytes], depends: str = ""
    ) -> None:
        """Add a package."""
        tree = self.base / "trees" / f"{name}_{version}"
        more = f"Depends: {depends}\n" if depends else ""
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a <a@b.c>\n"
            f"{more}Description: a kernel\n"
        )
        for path, content in {"DEBIAN/control": control.encode(), **files}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content)
        pool = self._root(suite) / "pool"
        pool.mkdir(parents=True, exist_ok=True)
        package = pool / f"{name}_{version}_amd64.deb"
        subprocess.run(
            ["dpkg-deb", "-Znone", "--build", "--root-owner-group", tree, package],
            check=True,
            capture_output=True,
        )
        content = package.read_bytes()
        self._stanzas.setdefault(suite, []).append(
            f"{control}Filename: pool/{package.name}\nSize: {len(content)}\n"
            f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
        )

    def add_kernel(self, suite: str, release: str, version: str) -> None:
        """Add the package of a kernel, as they are before 6.19."""
        self.add(suite, f"linux-image-{release}", version, files_of(release))

    def publish(self, *suites: str, is_signed: bool = True) -> None:
        """Write the lists of these suites, with what was added to them."""
        for suite in suites:
            packages = "\n".join(self._stanzas.get(suite, [])).encode()
            folder = self._root(suite) / "dists" / suite
            (folder / "main" / "binary-amd64").mkdir(parents=True, exist_ok=True)
            (folder / "main" / "binary-amd64" / "Packages").write_bytes(packages)
            release = (
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64\n"
                "Components: main\nDate: Sat, 01 Nov 2025 00:00:00 UTC\nSHA256:\n"
                f" {hashlib.sha256(packages).hexdigest()} {len(packages)}"
                " main/binary-amd64/Packages\n"
            ).encode()
            if is_signed:
                signed = self.signer.gpg("--clearsign", given=release)
                (folder / "InRelease").write_bytes(signed)
            else:
                (folder / "Release").write_bytes(release)

    def _root(self, suite: str) -> Path:
        return self.base / ("debian-security" if suite.endswith("-security") else "debian")
