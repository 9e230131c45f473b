"""Devices: the catalogue is complete, and an invalid file is refused by name."""

from collections.abc import Mapping
from typing import Any

import pytest

from fscost import devices, wear
from fscost.errors import InputError

GOOD = (
    "[wear]\ncapacity_bytes = 1000000000\nnand_bytes = 1100000000\nblock_bytes = 4194304\npe_cycles"
    " = 1000\n"
)


def read(text: str) -> wear.Device:
    return wear.of_file(devices.parse("d", "d.toml", text))


def test_the_catalogue_has_each_kind_and_every_given_value_has_a_source() -> None:
    found = [wear.of_file(each) for each in devices.catalogue() if "wear" in each.sections]
    assert {device.kind for device in found} == {
        "consumer SSD",
        "enterprise SSD",
        "first-generation SSD",
        "SD card",
        "eMMC",
        "UFS",
        "USB stick",
    }
    for device in found:
        given = {
            name for name, value in device.values.items() if value != wear.PARAMETERS[name].default
        }
        assert given - device.sources.keys() == set(), device.name


def test_spare_and_over_provisioning_divide_by_different_sizes() -> None:
    device = read(GOOD)
    assert device.spare == pytest.approx(1 / 11)
    assert device.over_provisioning == pytest.approx(0.1)
    assert device.with_spare(0.5).spare == pytest.approx(0.5, abs=1e-5)
    assert device.with_spare(0.5).values["nand_bytes"] == device.values["nand_bytes"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("capacity = 5", "d.toml: wear.capacity: no such field"),
        ("page_bytes = true", "d.toml: wear.page_bytes: is True, not a whole number"),
        ("page_bytes = 3000", "d.toml: wear.block_bytes: is not a multiple"),
        ("page_bytes = 1", "d.toml: wear.page_bytes: is 1"),
        (
            "page_bytes = { source = 'x' }",
            "d.toml: wear.page_bytes: is not a table of value and source",
        ),
        ("hot_cold = 1", "d.toml: wear.hot_cold: is 1, not true or false"),
        ("mapping = 'dftl'", "d.toml: wear.mapping: is 'dftl'"),
    ],
)
def test_a_wrong_field_is_refused_by_name(line: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        read(GOOD + line)
    assert error.value.what.startswith(says)
    assert error.value.remedy


def test_a_write_buffer_is_described_once() -> None:
    """Four devices had one in [latency] alone, so that writes of 512 bytes in order had WA 42."""
    text = GOOD + '[latency]\nmodel = "flash"\nbuffer_bytes = 65536\n'
    assert read(text).values["buffer_bytes"] == 65536
    assert read(GOOD + "buffer_bytes = 0\n" + text[len(GOOD) :]).values["buffer_bytes"] == 0
    for each in devices.catalogue():
        sections = [set(section.values) for section in each.sections.values()]
        twice = set.intersection(*sections) if len(sections) > 1 else set()
        assert not twice & {"buffer_bytes", "power_loss_protection"}, each.name


def test_times_of_nand_are_those_of_latency() -> None:
    """Utilisation of arrays was empty for every device of today."""
    found = wear.find("sata-ssd")
    assert wear.has_timing(found)
    # 16 dies program 96 KiB in 1,350 us: 16 KiB in 225 us.
    assert (found.values["program_us"], found.values["parallel_pages"]) == (225, 16)
    own = wear.find("first-generation-32gb")
    assert own.values["read_us"] == 25
    timed = [each for each in devices.catalogue() if "erase_us" in latency_values(each)]
    worn = [wear.of_file(each) for each in timed if "wear" in each.sections]
    assert len(worn) > 5
    assert all(wear.has_timing(each) for each in worn)


def latency_values(device: devices.Device) -> Mapping[str, Any]:
    return device.section("latency").values if "latency" in device.sections else {}
