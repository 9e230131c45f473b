"""Device files: every device of the catalogue can be used, and a wrong file is refused by name."""

from pathlib import Path

import pytest

from fscost import devices, latency, wear
from fscost.errors import InputError

NAMES_OF_THE_ISSUE = {"hdd-7200", "sata-ssd", "nvme", "sd-card", "emmc", "usb-stick", "ram"}


def test_every_name_finds_one_device_and_the_promised_names_have_latency() -> None:
    names = [name for each in devices.catalogue() for name in (each.name, *each.aliases)]
    assert len(set(names)) == len(names)
    assert set(names) >= NAMES_OF_THE_ISSUE
    for name in names:
        assert name in (devices.find(name).name, *devices.find(name).aliases)
    for name in NAMES_OF_THE_ISSUE:
        assert latency.find(name).kind in ("constant", "hard-disk", "flash")


def test_flash_devices_of_one_name_have_both_models() -> None:
    for name in ("sata-ssd", "nvme", "sd-card", "emmc"):
        assert wear.find(name).name == latency.find(name).name


@pytest.mark.parametrize("device", devices.catalogue(), ids=lambda device: device.name)
def test_a_device_of_the_catalogue_serves_as_a_file_and_every_value_has_a_source(
    device: devices.Device, tmp_path: Path
) -> None:
    path = tmp_path / f"{device.name}.toml"
    path.write_text(device.text)
    found = devices.find(str(path))
    assert (found.summary, found.kind, found.sections) == (
        device.summary,
        device.kind,
        device.sections,
    )
    for section in device.sections.values():
        assert section.values.keys() - section.sources.keys() <= {"model"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "d.toml: has no section"),
        ("[x", "d.toml: "),
        ("capacity_bytes = 5", "d.toml: capacity_bytes: no such field"),
        ("[weer]", "d.toml: weer: no such field"),
        ("wear = 3", "d.toml: wear: must be a section"),
        ("summary = 7\n[wear]", "d.toml: summary: must be one line of text"),
        ("aliases = 7\n[wear]", "d.toml: aliases: must be a list of names"),
        ("[wear]\na = { source = 'x' }", "d.toml: wear.a: is not a table of value and source"),
        (
            "[wear]\na = { value = 1, source = 2 }",
            "d.toml: wear.a: is not a table of value and source",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        devices.parse("d", "d.toml", text)
    assert error.value.what.startswith(says)
    assert error.value.remedy


def test_a_device_without_the_section_names_those_that_have_it() -> None:
    with pytest.raises(InputError, match=r"'hdd-7200' has no section \[wear\]") as error:
        wear.find("hdd-7200")
    assert "samsung-870-evo-1tb" in error.value.remedy
    assert "hdd-7200" not in error.value.remedy
