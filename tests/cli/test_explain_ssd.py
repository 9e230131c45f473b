"""`fscost explain --ssd`: NAND bytes beside the bytes written, charged as in `fscost wear`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
EXT4 = ROOT / "crates/explain/tests/data/ext/ext4.fscost"
RAID5 = ROOT / "fuzz/seeds/arrays/raid5.fscost"
SSD = "samsung-870-evo-1tb"
BY = {"structure": "structure", "cause": "cause", "file": "path", "phase": "step"}


def explained(fscost: Run, *arguments: str | Path) -> dict[str, Any]:
    ended = fscost("explain", *map(str, arguments), "--ssd", SSD, "--json")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("top", [1000, 2])
def test_groups_add_up_to_what_wear_charges(fscost: Run, by: str, top: int) -> None:
    found = explained(fscost, EXT4, "--by", by, "--top", str(top))
    worn = json.loads(fscost("wear", str(EXT4), "--ssd", SSD, "--by", BY[by], "--json").stdout)
    (entry,) = worn["entries"]
    assert found["nand_write_bytes"] == entry["nand_write_bytes"] > found["write_bytes"]
    for name in ("lifetime_runs", "lifetime_years", "runs_per_day"):
        assert found[name] == entry[name] > 0
    charged = {each["name"]: each["nand_write_bytes"] for each in entry["charges"]}
    for group in found["groups"]:
        name = group["name"]
        if by != "file" and name == "(of no single file)":
            name = "(none)"
        assert group["nand_write_bytes"] == pytest.approx(charged.get(name, 0)), name
    parts = [*found["groups"], *found["other_groups"], *([found["rest"]] if found["rest"] else [])]
    total = sum(each["nand_write_bytes"] for each in parts)
    assert total == pytest.approx(found["nand_write_bytes"])
    assert "(cold data)" in {each["name"] for each in found["other_groups"]}
    assert (found["rest"] is None) == (len(found["groups"]) < top)


def test_disks_add_up(fscost: Run) -> None:
    found = explained(fscost, RAID5, "--by", "cause", "--by-disk")
    disks = found["disks"].values()
    assert len(disks) == 3
    assert sum(disk["nand_write_bytes"] for disk in disks) == pytest.approx(
        found["nand_write_bytes"]
    )
    assert found["lifetime_runs"] == min(disk["lifetime_runs"] for disk in disks)


def test_a_phase_wears_less_than_all(fscost: Run) -> None:
    whole = explained(fscost, EXT4)
    part = explained(fscost, EXT4, "--phase", "remove")
    assert 0 < part["write_bytes"] < whole["write_bytes"]
    assert 0 < part["nand_write_bytes"] < whole["nand_write_bytes"]


@pytest.mark.parametrize("by", BY)
def test_tables_fit_80_columns(fscost: Run, by: str) -> None:
    ended = fscost("explain", str(EXT4), "--ssd", SSD, "--by", by, columns=80)
    lines = ended.stdout.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:6] == [by, "bytes", "share", "NAND", "of", "NAND"] for line in lines)
    assert any(line.startswith("(cold data)") for line in lines)
    assert f"{SSD}: " in ended.stdout
    assert " of NAND, " in ended.stdout


def test_without_a_device_nothing_is_added(fscost: Run) -> None:
    found = json.loads(fscost("explain", str(EXT4), "--json").stdout)
    assert "nand_write_bytes" not in json.dumps(found)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--by", "directory"), "--ssd cannot be combined with --by directory"),
        (("--at", "1"), "--at and --ssd cannot be combined"),
    ],
)
def test_what_cannot_be_charged_is_refused(
    fscost: Run, arguments: tuple[str, ...], says: str
) -> None:
    ended = fscost("explain", str(EXT4), "--ssd", SSD, *arguments, check=(2,))
    assert says in ended.stderr
