"""Mount options of a manifest name no device or path of this machine."""

import pytest

from fscost.crash.options import without_devices
from fscost.errors import InputError


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("", ""),
        ("noatime,data=journal,commit=300", "noatime,data=journal,commit=300"),
        ("logdev={disk.journal},noatime", "noatime"),
        ("journal_path={disk.journal}", ""),
        ("compress=zstd:3,subvol=/a/b", "compress=zstd:3,subvol=/a/b"),
    ],
)
def test_options_of_profiles_are_kept_but_for_their_disks(options: str, kept: str) -> None:
    assert without_devices(options) == kept


@pytest.mark.parametrize(
    "option",
    [
        *("device=/dev/sdb", "logdev=/dev/sdb", "rtdev=/dev/sdb", "jdev=/dev/sdb"),
        *("journal_path=/dev/sdb", "journal_dev=0x810", "journal_path=sdb", "loop", "loop=x"),
        *("verity.hashdevice=/dev/sdb", "source=/dev/sdb", "anything=/etc/shadow"),
        *("logdev={disk.journal}/../sdb", "logdev={disk.}", ' logdev="/dev/sdb"', "/dev/sdb"),
    ],
)
def test_options_that_name_a_device_or_a_path_are_refused(option: str) -> None:
    for options in (option, f"noatime,{option}", f"{option},noatime"):
        with pytest.raises(InputError, match="names a device or a path"):
            without_devices(options)
