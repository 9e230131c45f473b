"""Profiles as people write them: the parsed result, and one clear error for everything else."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fscost.errors import InputError
from fscost.profile import DiskSpec, Profile, parse_disk, resolve, with_run_disks
from fscost.profile.model import Array


def test_type_flags_and_mount_options() -> None:
    profile = resolve("ext4 -O ^has_journal -o noatime")
    assert profile == Profile(
        "ext4 -O ^has_journal -o noatime", "ext4", ("-O", "^has_journal"), "noatime"
    )


@pytest.mark.parametrize(
    ("text", "flags", "options"),
    [
        ("ext4 -o noatime -o commit=30", (), "noatime,commit=30"),
        ("ext4 -onoatime", (), "noatime"),
        ("ext4 -o noatime,commit=30 -O ^has_journal", ("-O", "^has_journal"), "noatime,commit=30"),
        ("ext4 -L 'two words'", ("-L", "two words"), ""),
        ("ext4 -I256", ("-I", "256"), ""),
        ("ext4 -j -m 0", ("-j", "-m", "0"), ""),
        ("btrfs --metadata=single", ("--metadata", "single"), ""),
        ("btrfs --meta single", ("--metadata", "single"), ""),
        ("xfs -m rmapbt=1 -i size=1024", ("-m", "rmapbt=1", "-i", "size=1024"), ""),
        ("  xfs \t -K ", ("-K",), ""),
    ],
)
def test_spellings(text: str, flags: tuple[str, ...], options: str) -> None:
    profile = resolve(text)
    assert (profile.mkfs_flags, profile.mount_options) == (flags, options)
    assert profile.name == " ".join(text.split())


def test_a_name_of_the_catalogue() -> None:
    assert resolve("ext4-noatime").mount_options == "noatime"
    assert resolve("ext4-noatime").name == "ext4-noatime"


def test_a_name_of_the_catalogue_and_more() -> None:
    profile = resolve("ext4-noatime -O ^dir_index -o commit=30")
    assert profile.mkfs_flags == ("-O", "^dir_index")
    assert profile.mount_options == "noatime,commit=30"
    assert not profile.summary, "the catalogue's line is about something else now"


def test_an_extension_replaces_what_excludes_it() -> None:
    assert resolve("ext4-strictatime -o noatime").mount_options == "noatime", (
        "the kernel would heed strictatime"
    )
    assert resolve("ext4-lazytime -o strictatime").mount_options == "lazytime,strictatime"
    assert resolve("ext4-lazytime -o nolazytime").mount_options == "nolazytime"


def test_a_second_disk_comes_with_its_mention() -> None:
    profile = resolve("ext4 -J device={disk.journal}")
    assert [disk.name for disk in profile.disks] == ["main", "journal"]
    assert profile.disks[1].size_bytes > 0
    assert resolve("ext4").disks == (DiskSpec(),)


def test_an_array() -> None:
    profile = resolve("ext4-noatime -b 1024 on md --level=5 -n 3 -o commit=30")
    assert profile.array == Array("5", 3)
    assert (profile.mkfs_flags, profile.mount_options) == (("-b", "1024"), "noatime,commit=30")
    assert [disk.name for disk in profile.disks] == ["m0", "m1", "m2"]
    assert [disk.name for disk in resolve("ext4-external-journal on md -l 1 -n 2").disks] == [
        "m0",
        "m1",
        "journal",
    ]
    assert resolve("ext4-raid5 -o noatime").array == Array("5", 3)
    assert [disk.name for disk in resolve("ext4-raid5 on md -l 1 -n 2 -b internal").disks] == [
        "m0",
        "m1",
    ]
    assert resolve("xfs-external-log on md -l 10 -n 4 -c 64").array == Array("10", 4, ("-c", "64"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("''", "no file system or profile is called ''"),
        ("ext4 'x", "no closing quotation"),
        ("ext4 \\", "no escaped character"),
        ("ext4\0", r"contains '\\x00'"),
        ("ext4\n-o noatime", r"contains '\\n'"),
        ("ext4 -o \x1b[2J", "contains"),
        ("zfs", "types: btrfs"),
        ("ext5", "did you mean ext"),
        ("ext4-notime", "did you mean ext4-noatime"),
        ("-o noatime", "no file system or profile is called '-o'"),
        ("zzz", "types: btrfs"),
        ("EXT4", "did you mean ext4"),
        ("ext4 -o", "option -o requires argument"),
        ("ext4 -O", "option -O requires argument"),
        ("ext4 -o ''", "-o has an empty value"),
        ("ext4 -O ''", "-O has an empty value"),
        ("ext4 -O -o noatime", "unexpected word 'noatime'"),
        ("ext4 -Z", "option -Z not recognized"),
        ("btrfs --no-such-flag", "option --no-such-flag not recognized"),
        ("btrfs --metadata", "option --metadata requires argument"),
        ("ext4 /dev/sda", "unexpected word '/dev/sda'"),
        ("ext4 -- /dev/sda", "unexpected word '/dev/sda'"),
        ("ext4 noatime", "unexpected word 'noatime'"),
        ("ext4 -J device=/dev/sda1", "not a disk of this profile"),
        ("ext4 -J size=4,device=LABEL=x", "not a disk of this profile"),
        ("xfs -l logdev=/dev/sda1", "not a disk of this profile"),
        ("xfs -r rtdev=/dev/sda1", "not a disk of this profile"),
        ("xfs -d name=/dev/sda1", "not a disk of this profile"),
        ("xfs -d file,name=/tmp/x", "not a disk of this profile"),
        ("f2fs -c /dev/sda", "-c /dev/sda: not a disk of this profile"),
        ("f2fs -c {disk.b},/dev/sda", "-c /dev/sda: not a disk of this profile"),
        ("jfs -j /dev/sda", "-j /dev/sda: not a disk of this profile"),
        ("jfs -J device=UUID=1", "not a disk of this profile"),
        ("reiserfs -j/dev/sda", "-j /dev/sda: not a disk of this profile"),
        (
            "reiserfs --journal-dev=/dev/sda",
            "--journal-device /dev/sda: not a disk of this profile",
        ),
        ("reiserfs -o jdev=/dev/sda", "not a disk of this profile"),
        ("reiserfs -B /etc/passwd", "-B cannot be part of a profile"),
        ("vfat -C", "-C cannot be part of a profile"),
        ("vfat -m /etc/passwd", "-m cannot be part of a profile"),
        ("nilfs2 -n", "-n cannot be part of a profile"),
        ("ntfs3 --no-action", "--no-action cannot be part of a profile"),
        ("ntfs", "did you mean ntfs3"),
        ("ext4 on", "unexpected word 'on'"),
        ("ext4 on md", "no level"),
        ("ext4 on md -l 5", "no number of disks"),
        ("ext4 on md -l 5 -l 6 -n 4", "more than one level"),
        ("ext4 on md -l 7 -n 2", "no level 7"),
        ("ext4 on md -l linear -n 1", "give 2 to 16 disks"),
        ("ext4 on md -l 5 -n 2", "give 3 to 16 disks"),
        ("ext4 on md -l 0 -n 17", "give 2 to 16 disks"),
        ("ext4 on md -l 0 -n ²", "give 2 to 16 disks"),
        ("ext4 on md -l 1 -n 2 -b /root/bitmap", "would be a file on the host"),
        ("ext4 on md -l 1 -n 2 /dev/sda /dev/sdb", "unexpected word '/dev/sda'"),
        ("ext4 on md -l 1 -n 2 --write-journal /dev/sda", "option --write-journal not recognized"),
        ("ext4 on md -l 1 -n 2 on md -l 1 -n 2", "unexpected word 'on'"),
        ("xfs -c options=/tmp/x", "-c cannot be part of a profile"),
        ("xfs -o logdev=/dev/sda1", "not a disk of this profile"),
        ("btrfs -o device=/dev/sda1", "not a disk of this profile"),
        ("ext4 -o journal_path=/dev/sda1", "not a disk of this profile"),
        ("ext4 -o loop", "the disks of a profile are block devices already"),
        ("ext4 -n", "-n cannot be part of a profile"),
        ("ext4 -t ext2", "the type is the first word"),
        ("xfs -N", "-N cannot be part of a profile"),
        ("btrfs --help", "--help cannot be part of a profile"),
        ("ext4 -o noatime,,commit=3", "a mount option has no name"),
        ("ext4 -o 'noatime, commit=3'", "a mount option contains a space"),
        ("ext4 -o =3", "a mount option has no name"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        resolve(text)
    assert caught.value.exit_code == 2
    assert caught.value.remedy, "every refusal says what to do"


TYPES = [
    "ext4",
    "ext2",
    "xfs",
    "btrfs",
    "f2fs",
    "jfs",
    "reiserfs",
    "vfat",
    "ext4-noatime",
    "btrfs-raid1",
    "xfs-raid5",
]
PIECES = [
    "on md",
    "-l 5 -n 3",
    "-o",
    "-O",
    "-E",
    "-J",
    "-j",
    "-l",
    "-m",
    "--",
    "--meta",
    "-",
    "-oo",
    "=",
    ",",
    "device=",
    "{disk.journal}",
    "{disk.",
    "/dev/sda",
    "noatime",
    "^has_journal",
    "size=1k",
    "é",
]
FRAGMENTS = st.sampled_from([*TYPES, *PIECES, "'", '"', "\\", " ", "\0", "\n", "\ud800"])


@given(st.one_of(st.text(), st.lists(FRAGMENTS).map(" ".join), st.lists(FRAGMENTS).map("".join)))
def test_never_anything_but_a_profile_or_an_input_error(text: str) -> None:
    try:
        profile = resolve(text)
    except InputError:
        return
    assert profile.disks[0].name == ("main" if profile.array is None else "m0")
    words = (*profile.mkfs_flags, *profile.mount_options.split(","))
    assert not any("device=/" in word or "dev=/" in word for word in words), (
        "a real device got through"
    )
    assert ("-j", "/dev/sda") not in itertools.pairwise(words), "a real device got through"


@given(
    st.sampled_from(["ext4", "xfs", "btrfs", "ext4-noatime"]),
    st.lists(st.sampled_from(["-o noatime", "-o commit=30", "-K", "-L x"])),
)
def test_what_resolves_resolves_again_from_its_name(first: str, rest: list[str]) -> None:
    profile = resolve(" ".join((first, *rest)))
    assert resolve(profile.name) == profile


def test_disks_have_a_size_and_a_model() -> None:
    spelled = (
        "ext4 -J device={disk.journal} --disk journal=sata-ssd,size=1906M --disk main=hdd-7200"
    )
    profile = resolve(spelled)
    assert [(disk.name, disk.model, disk.size_bytes) for disk in profile.disks] == [
        ("main", "hdd-7200", 0),
        ("journal", "sata-ssd", 1906 << 20),
    ]
    assert profile.mkfs_flags == ("-J", "device={disk.journal}")
    assert resolve("ext4 --disk main=ram").disks == (DiskSpec(),)


def test_an_option_reaches_the_profiles_that_have_the_disk() -> None:
    plain, external = with_run_disks(
        [resolve("ext4"), resolve("ext4-external-journal")],
        [parse_disk("main=hdd-7200"), parse_disk("journal=size=8M")],
    )
    assert [disk.model for disk in plain.disks] == ["hdd-7200"]
    assert [(disk.model, disk.size_bytes) for disk in external.disks] == [
        ("hdd-7200", 0),
        ("", 8 << 20),
    ]
    with pytest.raises(InputError, match="names nvme"):
        with_run_disks([resolve("ext4 --disk main=nvme")], [parse_disk("main=hdd-7200")])


@pytest.mark.parametrize(
    "text", ["", "main", "main=", "=x", "main=x,y", "main=size=1", "main=size=4M,x", "Main=x"]
)
def test_what_is_no_disk_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_disk(text)


def test_a_name_before_a_spelling_is_the_profiles_name() -> None:
    plain = resolve("ext4 -o commit=30")
    assert resolve("late=ext4 -o commit=30") == replace(plain, name="late")
    assert resolve("quiet=ext4-noatime").name == "quiet"
    with pytest.raises(InputError, match="xfs is already a file system or profile"):
        resolve("xfs=ext4")
    with pytest.raises(InputError, match="no file system or profile is called 'nothing'"):
        resolve("late=nothing")
