"""Devices: the catalogue is complete, and a file that is wrong is refused by name."""

from pathlib import Path

import pytest

from fscost import wear
from fscost.errors import InputError
from fscost.wear.device import parse

GOOD = "capacity_bytes = 1000000000\nnand_bytes = 1100000000\nblock_bytes = 4194304\npe_cycles = 1000\n"


def test_the_catalogue_has_each_kind_and_every_given_value_has_a_source() -> None:
    devices = wear.catalogue()
    assert {device.kind for device in devices} == {
        "consumer SSD",
        "enterprise SSD",
        "first-generation SSD",
        "SD card",
        "eMMC",
    }
    for device in devices:
        given = {
            name for name, value in device.values.items() if value != wear.PARAMETERS[name].default
        }
        assert given - device.sources.keys() == set(), device.name


@pytest.mark.parametrize("device", wear.catalogue(), ids=lambda device: device.name)
def test_a_device_printed_as_toml_is_read_back(device: wear.Device, tmp_path: Path) -> None:
    path = tmp_path / f"{device.name}.toml"
    path.write_text(wear.to_toml(device))
    found = wear.read_device(path)
    assert (found.name, found.summary, found.kind) == (device.name, device.summary, device.kind)
    assert (found.values, found.sources) == (device.values, device.sources)


def test_spare_and_over_provisioning_divide_by_different_sizes() -> None:
    device = parse("d", "d.toml", GOOD)
    assert device.spare == pytest.approx(1 / 11)
    assert device.over_provisioning == pytest.approx(0.1)
    assert device.with_spare(0.5).spare == pytest.approx(0.5, abs=1e-5)
    assert device.with_spare(0.5).values["nand_bytes"] == device.values["nand_bytes"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("capacity = 5", "d.toml: capacity: no such field"),
        ("page_bytes = true", "d.toml: page_bytes: is True, not a whole number"),
        ("page_bytes = 3000", "d.toml: block_bytes: is no multiple"),
        ("page_bytes = 1", "d.toml: page_bytes: is 1"),
        ("page_bytes = { source = 'x' }", "d.toml: page_bytes: is a table of something else"),
        ("hot_cold = 1", "d.toml: hot_cold: is 1, not true or false"),
        ("mapping = 'dftl'", "d.toml: mapping: is 'dftl'"),
        ("summary = 7", "d.toml: summary: must be one line of text"),
        ("= 7", "d.toml: "),
        ("[x", "d.toml: "),
    ],
)
def test_a_wrong_field_is_refused_by_name(line: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        parse("d", "d.toml", GOOD + line)
    assert error.value.what.startswith(says)
    assert error.value.remedy
