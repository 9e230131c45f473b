"""Counters of real devices (from public mailing lists and trackers), and untrustworthy ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import InputError
from fscost.wear import read_counters


def attribute(number: int, name: str, value: int, raw: int) -> dict[str, Any]:
    return {"id": number, "name": name, "value": value, "raw": {"value": raw}}


CRUCIAL = {
    "ata_smart_attributes": {
        "table": [
            attribute(173, "Ave_Block-Erase_Count", 49, 769),
            attribute(202, "Percent_Lifetime_Remain", 49, 51),
            attribute(246, "Total_LBAs_Written", 100, 146837983747),
            attribute(247, "Host_Program_Page_Count", 100, 4592609183),
            attribute(248, "FTL_Program_Page_Count", 100, 4948954393),
        ]
    },
    "power_on_time": {"hours": 4930},
}
"""linux-btrfs, 2023-04-03: "Scrub errors unable to fixup"."""


def made(folder: Path, value: Any) -> Path:
    path = folder / "now.json"
    path.write_text(json.dumps(value))
    return path


def test_a_drive_that_counts_pages_knows_its_amplification(tmp_path: Path) -> None:
    found = read_counters(made(tmp_path, CRUCIAL))
    assert found.used == (0.5, 0.52)
    assert found.used_by == "Percent_Lifetime_Remain"
    assert found.host_write_bytes == 146837983747 * 512
    # (4,592,609,183 + 4,948,954,393) / 4,592,609,183
    assert found.amplification(275e9) == pytest.approx(2.0776, abs=1e-4)
    assert found.left_bytes is not None
    least, most = found.left_bytes
    # 75.18 TB were 50 to 52 % of its life, so that 69.4 to 75.2 TB are left.
    assert (least / 1e12, most) == (pytest.approx(69.4, abs=0.1), found.host_write_bytes)


def test_a_samsung_drive_counts_mean_erases(tmp_path: Path) -> None:
    table = [
        attribute(177, "Wear_Leveling_Count", 85, 200),
        attribute(241, "Total_LBAs_Written", 99, 200_000_000_000),
    ]
    value = {
        "model_name": "Samsung SSD 870 EVO 1TB",
        "user_capacity": {"bytes": 1000204886016},
        "ata_smart_attributes": {"table": table},
    }
    found = read_counters(made(tmp_path, value))
    assert (found.used, found.capacity_bytes) == ((0.14, 0.16), 1000204886016)
    # 200 erases of 1 TiB for 102.4 TB from the host.
    assert found.amplification(float(1 << 40)) == pytest.approx(200 * (1 << 40) / 102.4e12)
    del value["model_name"]
    assert read_counters(made(tmp_path, value)).amplification(float(1 << 40)) is None


def test_statistics_of_the_standard_have_precedence(tmp_path: Path) -> None:
    statistics = {
        "pages": [
            {"number": 1, "table": [{"name": "Logical Sectors Written", "value": 1000}]},
            {"table": [{"name": "Percentage Used Endurance Indicator", "value": 7}]},
        ]
    }
    value = CRUCIAL | {"ata_device_statistics": statistics, "logical_block_size": 4096}
    found = read_counters(made(tmp_path, value))
    assert (found.used, found.host_write_bytes) == ((0.06, 0.08), 4_096_000)
    newer = value | {
        "endurance_used": {"current_percent": 120},
        "host_writes": {"units": 5, "bytes_per_unit": 512_000},
    }
    found = read_counters(made(tmp_path, newer))
    assert (found.left, found.host_write_bytes) == ((0, 0), 2_560_000)


def test_an_unused_drive_has_no_upper_bound(tmp_path: Path) -> None:
    log = {"percentage_used": 0, "data_units_written": 1000}
    found = read_counters(made(tmp_path, {"nvme_smart_health_information_log": log}))
    assert found.used == (0, 0.01)
    assert found.left_bytes == (pytest.approx(99 * 512e6), None)


def test_the_more_worn_memory_of_an_emmc_decides(tmp_path: Path) -> None:
    device = tmp_path / "mmcblk0" / "device"
    device.mkdir(parents=True)
    (device / "life_time").write_text("0x02 0x04\n")
    (device / "pre_eol_info").write_text("0x02\n")
    (device / "name").write_text("BJTD4R\n")
    (tmp_path / "mmcblk0" / "size").write_text("61071360\n")
    found = read_counters(tmp_path / "mmcblk0")
    assert (found.model, found.used) == ("BJTD4R", (pytest.approx(0.3), pytest.approx(0.4)))
    assert found.capacity_bytes == 61071360 * 512
    assert "80 % of its reserved blocks" in found.warnings[0]
    assert read_counters(device).used == found.used
    (device / "life_time").write_text("0x00 0x00\n")
    assert read_counters(device).used is None
    (device / "life_time").write_text("0x0b 0x01\n")
    assert read_counters(device).left == (0, 0)


def test_a_ufs_device_is_found_from_its_disk(tmp_path: Path) -> None:
    host = tmp_path / "1d84000.ufs"
    (host / "health_descriptor").mkdir(parents=True)
    scsi = host / "host0" / "target0:0:0" / "0:0:0:0"
    scsi.mkdir(parents=True)
    for name, level in (("eol_info", 1), ("life_time_estimation_a", 3)):
        (host / "health_descriptor" / name).write_text(f"0x{level:02x}\n")
    (host / "health_descriptor" / "life_time_estimation_b").write_text("0x00\n")
    disk = tmp_path / "sda"
    disk.mkdir()
    (disk / "device").symlink_to(scsi)
    for place in (host, disk, host / "health_descriptor"):
        assert read_counters(place).used == (pytest.approx(0.2), pytest.approx(0.3))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"ID# ATTRIBUTE_NAME FLAG", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": NaN}', "not JSON: NaN"),
        (b"9" * 5000, "not JSON"),
        (b"7", "no counter of wear"),
        (b'{"smartctl": {"messages": 5}}', "no counter of wear"),
        (
            b'{"smartctl": {"messages": [{"string": "open failed: Permission denied"}]}}',
            r"no counter of wear \(smartctl: open failed: Permission denied\)",
        ),
        (b'{"endurance_used": {"current_percent": -5}}', "no counter of wear"),
        (b" " * (5 << 20), "larger than 4 MiB"),
    ],
)
def test_what_holds_no_counters_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "now.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as raised:
        read_counters(path)
    assert raised.value.what.startswith(str(path))
    assert "smartctl" in str(raised.value.remedy)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "has no life_time or health_descriptor"),
        ({"type": "SD"}, "is an SD card, which has no counter"),
        ({"life_time": "0x01"}, "life_time: not two numbers"),
        ({"life_time": "0x01 0x0c"}, "life_time: '0x0c' is not a level"),
        ({"life_time": "0x01 worn"}, "life_time: 'worn' is not a level"),
        ({"life_time": "0x01 0x01", "pre_eol_info": "0xff"}, "pre_eol_info: '0xff'"),
        ({"life_time_estimation_a": "0x01"}, "life_time_estimation_b: '' is not a level"),
    ],
)
def test_a_folder_without_levels_is_refused(
    tmp_path: Path, files: dict[str, str], says: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says) as raised:
        read_counters(tmp_path)
    assert raised.value.remedy
