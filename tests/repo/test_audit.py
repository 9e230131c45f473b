"""tools/audit: a finding fails, and a database that cannot be reached is a warning."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNREACHED = "exit 128"


@pytest.mark.parametrize(
    ("git", "deny", "pip_audit", "ci", "status", "warnings", "denies"),
    [
        ("exit 0", "exit 0", "exit 0", "1", 0, [], 2),
        ("exit 0", "exit 1", "exit 0", "1", 1, [], 2),
        ("exit 0", "exit 0", "exit 1", "1", 1, [], 2),
        (UNREACHED, "exit 0", "exit 0", "1", 0, ["no crate"], 0),
        (UNREACHED, "exit 1", "exit 0", "", 1, ["no crate"], 2),
        (UNREACHED, "exit 0", None, "1", 0, ["no crate", "no Python package"], 0),
    ],
)
def test_an_audit(
    tmp_path: Path,
    git: str,
    deny: str,
    pip_audit: str | None,
    ci: str,
    status: int,
    warnings: list[str],
    denies: int,
) -> None:
    """`pip_audit`: what it does with a lock; None if it knows no vulnerability at all."""
    knows = 'case "$*" in *.lock) ' + f"{pip_audit};; *) echo PYSEC-2019-217; exit 1;; esac"
    for name, text in (
        ("git", git),
        ("deny", f"echo denied >>{tmp_path}/denied; {deny}"),
        ("pip-audit", "exit 1" if pip_audit is None else knows),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        [ROOT / "tools/audit", tmp_path / "deny", tmp_path / "pip-audit"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended.stderr
    said = [line for line in ended.stderr.splitlines() if "WARNING" in line]
    assert len(said) == len(warnings)
    assert all(words in line for words, line in zip(warnings, said, strict=True))
    denied = tmp_path / "denied"
    assert (denied.read_text().count("denied") if denied.exists() else 0) == denies
