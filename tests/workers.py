"""The workers of `make test` (pytest-xdist): their shared state and the order of tests."""

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/report/",)
"""Folders whose tests share a costly fixture: one worker runs all of them."""

SINGLY = (
    "tests/analysis/btrfs/",
    "tests/analysis/ext/",
    "tests/analysis/others/",
    "tests/analysis/test_mkfs_flags.py",
    "tests/analysis/test_owners.py",
    "tests/lab/vm/test_file_systems.py",
    "tests/lab/vm/test_snapshots.py",
    "tests/oracles/test_arrays_in_guests.py",
    "tests/oracles/test_tagged.py",
    "tests/oracles/test_tagged_guests.py",
    "tests/whole/test_residue.py",
    "tests/whole/test_vm_bad_guests.py",
    "tests/whole/test_vm_residue.py",
    "tests/whole/test_vm_unprivileged.py",
)
"""Long tests that share nothing costly: any free worker runs the next one. In other files one
worker runs all tests."""

LONGEST_FIRST = (
    "tests/front_end/test_ublk_cells.py",
    "tests/whole/test_vm_study.py",
    "tests/bad_inputs/",
    "tests/analysis/strip/",
    "tests/report/",
    "tests/whole/test_vm_",
    "tests/analysis/",
    "tests/oracles/",
    "tests/lab/vm/",
    "tests/whole/",
)
"""Tests to start first, so that no worker is left with a long test at the end."""


class Scheduler(LoadScopeScheduling):
    """A scheduler that gives a free worker the longest remaining unit of tests."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


def unit(nodeid: str) -> str:
    """Return the unit of a test: its tests run in one worker, in order."""
    if nodeid.startswith(SINGLY):
        return nodeid
    folder = next((folder for folder in TOGETHER if nodeid.startswith(folder)), None)
    return folder or nodeid.partition("::")[0]


def place(nodeid: str) -> int:
    """Return the place of a test in the order of a run."""
    firsts: Iterable[int] = (
        at for at, first in enumerate(LONGEST_FIRST) if nodeid.startswith(first)
    )
    return next(iter(firsts), len(LONGEST_FIRST))


def isolate(config: pytest.Config) -> None:
    """Give this worker a lock of its own: fscost allows one run at a time on a machine, so two
    workers must look like two machines. Root's lock is in `/run`, another user's in
    `$XDG_RUNTIME_DIR`."""
    if os.geteuid() != 0:
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_RUNTIME_DIR"] = folder.name
        return
    names = Path("/etc/resolv.conf").resolve()
    resolvers = names.read_bytes() if names.is_relative_to("/run") and names.exists() else None
    clone_newns = 0x20000
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newns) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"], check=True)
    if resolvers is not None:
        names.parent.mkdir(parents=True)
        names.write_bytes(resolvers)
