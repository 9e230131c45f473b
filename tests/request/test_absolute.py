"""Paths within profiles do not depend on the folder in which a run is resumed."""

from pathlib import Path

import pytest

from fscost import profile
from fscost.cli.suite import load, requests
from fscost.request.model import Request
from fscost.request.request import absolute, with_models


@pytest.mark.parametrize(
    ("spelling", "placed"),
    [
        ("ext4", "ext4"),
        ("ext4 --disk main=sata-ssd,size=1G", "ext4 --disk main=sata-ssd,size=1G"),
        ("ext4 --disk main=/a/m.toml", "ext4 --disk main=/a/m.toml"),
        ("ext4 --disk main=m.toml", "ext4 --disk main=/h/m.toml"),
        ("ext4 --disk=main=./m.toml,size=1G -m 0", "ext4 --disk=main=/h/m.toml,size=1G -m 0"),
        (
            "ext4 --disk main=a.toml --disk journal=b.toml",
            "ext4 --disk main=/h/a.toml --disk journal=/h/b.toml",
        ),
        (
            "ext4 {--disk main=a.toml,--disk main=ram}",
            "ext4 {--disk main=/h/a.toml,--disk main=ram}",
        ),
        ("ext4 --disk main={a,b}.toml", "ext4 --disk main={a,b}.toml"),
    ],
)
def test_a_model_of_a_profile_gets_an_absolute_path(spelling: str, placed: str) -> None:
    assert with_models(spelling, Path("/h")) == placed
    assert with_models(placed, Path("/other")) == placed


def test_a_folder_that_a_shell_would_quote(tmp_path: Path) -> None:
    folder = tmp_path / "my disks"
    placed = with_models("ext4 --disk main=m.toml,size=1G", folder)
    [disk] = profile.resolve(placed).disks
    assert (disk.model, disk.size_bytes) == (f"{folder}/m.toml", 1 << 30)
    assert with_models("ext4 --disk main=m.toml", Path("/a,b")) == "ext4 --disk main=m.toml"


def test_a_request_can_be_repeated_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spelling = "ext4 --disk main=m.toml"
    found = absolute(Request(on=("xfs", spelling), baseline=spelling))
    placed = f"ext4 --disk main={tmp_path}/m.toml"
    assert (found.on, found.baseline) == (("xfs", placed), placed)


def test_a_suite_s_models_start_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "suite.toml"
    spelling = "ext4 --disk main=m.toml"
    path.write_text(
        f"version = 1\nprofiles = ['xfs', '{spelling}']\nbaseline = '{spelling}'\n"
        "[workloads.w]\ncommand = 'true'\n"
    )
    found = requests(load(path), path)["w"]
    placed = f"ext4 --disk main={tmp_path}/m.toml"
    assert (found.on, found.baseline) == (("xfs", placed), placed)
