"""SMART: real drives' answers (smartctl 7.0 and 7.1, shortened), and untrustworthy answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from fscost.host import smart

INTEL_660P = {
    "model_name": "INTEL SSDPEKNW010T8",
    "logical_block_size": 512,
    "nvme_smart_health_information_log": {
        "percentage_used": 0,
        "data_units_written": 7773431,
        "host_writes": 83170961,
        "power_on_hours": 2401,
        "media_errors": 0,
    },
    "power_on_time": {"hours": 2401},
}
SAMSUNG_850_PRO = {
    "model_name": "Samsung SSD 850 PRO 128GB",
    "logical_block_size": 512,
    "ata_smart_attributes": {
        "table": [
            {"id": 177, "name": "Wear_Leveling_Count", "raw": {"value": 5, "string": "5"}},
            {
                "id": 241,
                "name": "Total_LBAs_Written",
                "raw": {"value": 1047174917, "string": "1047174917"},
            },
        ]
    },
    "power_on_time": {"hours": 846},
}


def test_an_nvme_drive_counts_thousands_of_sectors() -> None:
    found = smart.of_smartctl(INTEL_660P)
    assert found == {
        "model": "INTEL SSDPEKNW010T8",
        "host_write_bytes": 7773431 * 512_000,
        "percent_used": 0,
        "used_by": "percentage_used",
        "power_on_hours": 2401,
        "media_errors": 0,
    }


def test_a_sata_drive_counts_sectors_or_larger_units_by_name() -> None:
    assert smart.of_smartctl(SAMSUNG_850_PRO)["host_write_bytes"] == 1047174917 * 512
    table = [
        {"name": "Host_Writes_32MiB", "raw": {"value": 3}},
        {"name": "NAND_Writes_1GiB", "raw": {"value": 2}},
    ]
    assert smart.of_smartctl({"ata_smart_attributes": {"table": table}}) == {
        "host_write_bytes": 96 << 20,
        "nand_write_bytes": 2 << 30,
    }


def test_nvme_cli_spells_other_names_and_large_numbers_as_text() -> None:
    found = smart.of_nvme(
        {
            "percent_used": 3,
            "data_units_written": "7773431",
            "power_on_hours": "2401",
            "media_errors": 0,
        }
    )
    assert found == {
        "host_write_bytes": 7773431 * 512_000,
        "percent_used": 3,
        "used_by": "percentage_used",
        "power_on_hours": 2401,
        "media_errors": 0,
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {"ata_smart_attributes": 7},
        {"ata_smart_attributes": {"table": {"a": 1}}},
        {"ata_smart_attributes": {"table": [None, {"name": 5}, {"name": "Total_LBAs_Written"}]}},
        {"ata_smart_attributes": {"table": [{"name": "Total_LBAs_Written", "raw": {"value": -1}}]}},
        {"nvme_smart_health_information_log": {"data_units_written": True}},
        {
            "nvme_smart_health_information_log": {
                "data_units_written": 1.5,
                "power_on_hours": 1 << 200,
            }
        },
    ],
)
def test_what_is_no_counter_is_left_out(value: Any) -> None:
    assert smart.of_smartctl(value) == {}


def test_only_counters_that_ran_forwards_have_a_difference() -> None:
    before = {"host_write_bytes": 100, "nand_write_bytes": 50, "media_errors": 0}
    assert smart.difference(before, {"host_write_bytes": 300, "nand_write_bytes": 40}) == {
        "host_write_bytes": 200
    }
    assert smart.difference({"unavailable": "x"}, before) == {}


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_tool_is_asked_about_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        smart, "tool", lambda name: path if (path := tmp_path / name).exists() else None
    )
    device = Path("/dev/nvme7n1")
    assert "neither smartctl nor nvme" in smart.read(device)["unavailable"]
    log = {"data_units_written": 2, "percent_used": 1}
    tool(
        tmp_path,
        "nvme",
        f"""test "$*" = 'smart-log /dev/nvme7n1 -o json' && echo '{json.dumps(log)}'""",
    )
    assert smart.read(device)["host_write_bytes"] == 1_024_000
    # A drive that fails its own test: exit status 8 (smartctl(8)), with an answer.
    tool(
        tmp_path,
        "smartctl",
        f"""test "$*" = '--json --all /dev/nvme7n1' && echo '{json.dumps(INTEL_660P)}'; exit 8""",
    )
    assert smart.read(device)["model"] == "INTEL SSDPEKNW010T8"
    for script, says in (
        ("echo nonsense", "smartctl: "),
        ("echo '{}'", "reports no counters"),
        ("exit 1", "smartctl: "),
    ):
        tool(tmp_path, "smartctl", script)
        assert says in smart.read(device)["unavailable"]
