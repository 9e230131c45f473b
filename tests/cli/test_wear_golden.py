"""`fscost wear` in every form, compared with files that a person has reviewed.

After an intended change: FSCOST_UPDATE_GOLDEN=1 make test PYTEST=tests/cli/test_wear_golden.py,
then review the difference.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kept_runs import run_of
from tests.reviewed import check

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
EXT4 = ROOT / "crates/explain/tests/data/ext/ext4.fscost"
IOLOG = ROOT / "crates/traces/tests/data/fio-v3.iolog"
DEVICE = """
summary = "a small page-mapped device"
kind = "consumer SSD"
[wear]
capacity_bytes = 1000000000
nand_bytes = 1073741824
block_bytes = 1048576
pe_cycles = 1000
pe_cycles_most = 3000
rated_write_bytes = 300000000000
"""
"""A device for this test alone, because the catalogue may change."""
NOW = {
    "model_name": "A drive",
    "user_capacity": {"bytes": 2_000_000_000},
    "ata_smart_attributes": {
        "table": [
            {"name": "Percent_Lifetime_Remain", "value": 85, "raw": {"value": 15}},
            {"name": "Total_LBAs_Written", "value": 100, "raw": {"value": 800_000_000}},
            {"name": "Host_Program_Page_Count", "value": 100, "raw": {"value": 25_000_000}},
            {"name": "FTL_Program_Page_Count", "value": 100, "raw": {"value": 375_000_000}},
        ]
    },
}
"""Counters of a drive, for this test alone."""
FORMS = {
    "wear-80.txt": ("r.fscost",),
    "wear.json": ("r.fscost", "--json"),
    "wear.md": ("r.fscost", "--by", "path", "--top", "3", "--markdown", "-"),
    "wear.csv": ("r.fscost", "--sweep", "spare=7..28:7", "--csv", "-"),
    "wear-sweep-80.txt": ("r.fscost", "--sweep", "spare=7..28:7"),
    "wear-array-80.txt": ("r.fscost", "--array", "raid5,members=3,chunk=64K"),
    "wear-trace-80.txt": ("t.iolog",),
    "wear-now-80.txt": ("r.fscost", "--per-day", "2MB", "--now", "now.json"),
}


def abridged(text: str) -> str:
    """Return JSON without the erases of each block; their sum stays."""
    found = json.loads(text)
    for entry in found["entries"]:
        entry["erases"] = sum(entry["erases"])
    return json.dumps(found, indent=1) + "\n"


@pytest.fixture
def inputs(tmp_path: Path) -> None:
    """Create inputs with short names in the program's working directory."""
    shutil.copy(EXT4, tmp_path / "r.fscost")
    shutil.copy(IOLOG, tmp_path / "t.iolog")
    (tmp_path / "d.toml").write_text(DEVICE)
    (tmp_path / "now.json").write_text(json.dumps(NOW))


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_as_it_was_looked_at(fscost: Run, name: str) -> None:
    ended = fscost("wear", *FORMS[name], "--ssd", "d.toml", columns=80)
    text = abridged(ended.stdout) if name.endswith(".json") else ended.stdout
    check(name, text)
    if name.endswith("80.txt"):
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.usefixtures("inputs")
def test_profiles_that_wear_alike_share_a_table(fscost: Run, tmp_path: Path) -> None:
    run_of(tmp_path / "run", "r.fscost", "r.fscost")
    shutil.copy(EXT4, tmp_path / "run" / "r.fscost")
    text = fscost("wear", "run", "--ssd", "d.toml", columns=80).stdout
    assert text.count(": wear by cause\n") == 1
    assert "ext4, ext4 -o commit=30: wear by cause\n" in text
