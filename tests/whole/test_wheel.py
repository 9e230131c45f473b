"""The wheel: a clean environment with nothing else measures a cell."""

import os
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.root
@pytest.mark.long
def test_a_clean_environment_with_nothing_but_the_wheel_runs_a_cell(tmp_path: Path) -> None:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-C", ROOT, "wheel"], check=True, env=clean)
    wheel = max((ROOT / "target/wheels").glob("fscost-*_x86_64.whl"), key=os.path.getmtime)
    names = zipfile.ZipFile(wheel).namelist()
    for end in ("LICENSE-THIRD-PARTY.md", "LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith(end) for name in names), end

    venv.create(tmp_path / "venv", with_pip=True)
    bin_ = tmp_path / "venv/bin"
    subprocess.run([bin_ / "pip", "--quiet", "install", wheel], check=True)

    def fscost(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bin_ / "fscost", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(tmp_path)},
        )

    options = ("--lab", "native", "-r", "1", "--on", "ext4", "-o", "out")
    measured = fscost("compare", *options, "--", "echo hi >f")
    assert measured.returncode == 0, measured.stderr
    explained = fscost("explain", "out")
    assert "journal" in explained.stdout, explained.stderr
    assert "pip install 'fscost[report]'" in fscost("report", "out").stderr
