"""Bare git repositories made from a stream of files, so that nothing is unpacked on the host
(git-fast-import(1))."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fscost.errors import HostError, InputError

_WHO = b"fscost <fscost@localhost>"
_EPOCH_S = 1_230_768_000
FILE, EXECUTABLE, SYMLINK = b"100644", b"100755", b"120000"

# Configuration that a step's git reads instead of the user's and the host's: no background
# repacking, and no refusal because the repository belongs to another user (safe.directory is
# honoured only in a configuration file, git-config(1)). fscost made the repository itself. Without
# a name, git asks the host's resolver for one, and writes it to the clone's reflog.
CONFIG = (
    "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[safe]\n\tdirectory ="
    " *\n[advice]\n\tdetachedHead = false\n"
    "[user]\n\tname = fscost\n\temail = fscost@localhost\n"
)


class Importer:
    """Importer of commits into one branch. The same calls make the same bytes: one thread, and
    fixed names and dates."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._commits = 0

    def commit(self, message: str, files: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Add one commit that adds or replaces files: (mode, path, content)."""
        text = message.encode()
        when = b"%d +0000" % (_EPOCH_S + 60 * self._commits)
        self._write(
            b"commit refs/heads/main\ncommitter %s %s\ndata %d\n%s\n"
            % (_WHO, when, len(text), text)
        )
        for mode, path, content in files:
            self._write(b"M %s inline %s\ndata %d\n" % (mode, _quoted(path), len(content)))
            self._write(content)
            self._write(b"\n")
        self._commits += 1

    def _write(self, data: bytes) -> None:
        self._stream.write(data)


@contextmanager
def new_repository(folder: Path) -> Iterator[Importer]:
    """Make `folder/repo`, a bare repository on branch main with the commits of the block, and
    `folder/gitconfig` for the steps."""
    (folder / "gitconfig").write_text(CONFIG)
    repo = folder / "repo"
    run_git(folder, "init", "-q", "--bare", "--template=", "--initial-branch=main", str(repo))
    # Without unpackLimit, fewer than a hundred objects would become loose files.
    command = ["git", "-C", str(repo), "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"]
    with (folder / "fast-import.log").open("w+b") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment(folder)
        )
        assert process.stdin is not None
        broken = False
        try:
            yield Importer(process.stdin)
            process.stdin.close()
        except BrokenPipeError:
            broken = True
        except BaseException:
            process.kill()
            raise
        finally:
            try:
                process.stdin.close()
            except BrokenPipeError:
                broken = True
            process.wait()
        log.seek(0)
        if broken or process.returncode != 0:
            raise HostError(
                f"git fast-import failed: {log.read().decode(errors='replace').strip()}",
                "check that the host's disk is not full",
            )
    (folder / "fast-import.log").unlink()


def run_git(folder: Path, *arguments: str) -> str:
    """Run git with fscost's settings only; InputError with git's error output if it fails."""
    done = subprocess.run(
        ["git", *arguments],
        env=environment(folder),
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise InputError(
            f"git {arguments[0]}: {done.stderr.strip()}",
            "check that git can clone that repository",
        )
    return done.stdout.strip()


def environment(folder: Path) -> dict[str, str]:
    """Return an environment free of the user's: no GIT_DIR, no settings, no prompts."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        # An untrusted repository could name a program that fetches missing objects
        # (CVE-2024-32004).
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_AUTHOR_NAME": "fscost",
        "GIT_AUTHOR_EMAIL": "fscost@localhost",
        "GIT_AUTHOR_DATE": f"{_EPOCH_S} +0000",
        "GIT_COMMITTER_NAME": "fscost",
        "GIT_COMMITTER_EMAIL": "fscost@localhost",
        "GIT_COMMITTER_DATE": f"{_EPOCH_S} +0000",
    }


def _quoted(path: bytes) -> bytes:
    """Quote any path for git-fast-import(1)."""
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
