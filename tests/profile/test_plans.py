"""Commands that profiles are turned into."""

import pytest

from fscost.errors import InputError
from fscost.profile import FormatPlan, Profile, catalogue, plan_format, resolve, unsupported_reason
from fscost.profile.families import FAMILIES, LATER, family_of, known_types
from fscost.profile.load import read_catalogue
from fscost.profile.packages import PACKAGES

GIB = 1 << 30


def plan(text: str, seed: int = 7, disk_size_bytes: int = GIB) -> FormatPlan:
    return plan_format(resolve(text), disk_size_bytes=disk_size_bytes, seed=seed)


def value(command: tuple[str, ...], flag: str) -> str:
    assert command.count(flag) == 1, f"{flag} once in {command}"
    return command[command.index(flag) + 1]


@pytest.mark.parametrize("profile", catalogue(), ids=lambda profile: profile.name)
def test_every_plan_is_complete(profile: Profile) -> None:
    made = plan_format(profile, disk_size_bytes=GIB, seed=1)
    text = repr((made.mkfs, made.mount_options))
    for disk in profile.disks:
        assert f"{{disk.{disk.name}}}" in text, "every disk is used"
    for command in (
        *made.mkfs,
        *made.after_mount,
        *made.background,
        *(command for _, command in made.inspect),
    ):
        assert command[0] in made.needs_tools
        assert command[0] in PACKAGES, "we know which package brings it"
    assert made.mount_device == ("{disk.main}" if profile.array is None else "/dev/md0")
    assert made.mount_type == profile.type
    assert profile.summary


def test_no_lazy_initialisation_and_the_users_own_options_last() -> None:
    extended = value(
        plan("ext4 -E stride=4 -E stripe_width=8,lazy_itable_init=1").mkfs[0], "-E"
    ).split(",")
    assert extended[:2] == ["lazy_itable_init=0", "lazy_journal_init=0"]
    assert extended[-3:] == ["stride=4", "stripe_width=8", "lazy_itable_init=1"]
    assert not any(option.startswith("assume_storage_prezeroed") for option in extended)


def test_features_of_base_and_extension_are_one_list() -> None:
    assert value(plan("ext4-nojournal -O ^dir_index").mkfs[0], "-O") == "^has_journal,^dir_index"


def test_reproducible_from_the_seed() -> None:
    assert plan("ext4") == plan("ext4")
    for text in ("ext4", "ext2", "ext4-external-journal", "f2fs", "reiserfs", "vfat"):
        assert plan(text, seed=1).mkfs != plan(text, seed=2).mkfs


def test_directories_hash_alike_in_all_profiles_of_a_repetition() -> None:
    def hash_seed(text: str) -> str:
        return next(
            option
            for option in value(plan(text).mkfs[0], "-E").split(",")
            if option.startswith("hash_seed=")
        )

    assert hash_seed("ext4") == hash_seed("ext4 -o noatime") == hash_seed("ext3")


@pytest.mark.parametrize(
    "text",
    [
        "ext4 -U random",
        "btrfs -U 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "f2fs -U 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "reiserfs -u 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "vfat -i 12345678",
    ],
)
def test_the_users_uuid_wins(text: str) -> None:
    assert value(plan(text).mkfs[0], text.split()[1]) == text.split()[-1]


def test_btrfs_and_xfs_keep_their_random_uuids() -> None:
    """The kernel refuses to mount the same UUID twice: see test_mounts.py,
    test_the_same_profile_and_seed_again and …_twice_at_a_time."""
    assert "-U" not in plan("btrfs").mkfs[0]
    assert "uuid" not in repr(plan("xfs").mkfs)


def test_external_journal_first_with_the_same_block_size() -> None:
    journal, main = plan("ext4 -J device={disk.journal}").mkfs
    assert journal[0] == "mke2fs"
    assert journal[-1] == "{disk.journal}"
    assert value(journal, "-O") == "journal_dev"
    assert value(journal, "-b") == value(main, "-b") == "4096"
    assert value(main, "-J") == "device={disk.journal}"
    journal, main = plan("ext4 -b 1024 -J device={disk.journal}").mkfs
    assert value(journal, "-b") == value(main, "-b") == "1024"


def test_the_xfs_log_is_named_at_the_mount_too() -> None:
    assert (
        plan("xfs -l logdev={disk.journal} -o noatime").mount_options
        == "noatime,logdev={disk.journal}"
    )
    assert (
        plan("xfs -l logdev={disk.journal} -o logdev={disk.journal}").mount_options
        == "logdev={disk.journal}"
    )


def test_the_journal_of_jfs_is_made_first_or_by_the_same_mkfs() -> None:
    journal, main = plan("jfs -J device={disk.journal}").mkfs
    assert journal == ("mkfs.jfs", "-q", "-J", "journal_dev", "{disk.journal}")
    assert value(main, "-J") == "device={disk.journal}"
    (both,) = plan("jfs -j {disk.journal}").mkfs
    assert value(both, "-j") == "{disk.journal}"


def test_the_journal_of_reiserfs_is_named_at_the_mount_too() -> None:
    for text in (
        "reiserfs -j {disk.journal} -o notail",
        "reiserfs --journal-device={disk.journal} -o notail",
    ):
        assert plan(text).mount_options == "notail,jdev={disk.journal}"
    assert (
        plan("reiserfs -j {disk.journal} -o jdev={disk.journal}").mount_options
        == "jdev={disk.journal}"
    )
    assert plan("reiserfs").mount_options == ""


def test_an_array_takes_the_place_of_the_main_disk() -> None:
    made = plan("ext4 -J device={disk.journal} on md -l raid5 -n 3 -c 64 -o noatime")
    create, journal, main = made.mkfs
    assert create[:3] == ("mdadm", "--create", "/dev/md0")
    assert {"--run", "--assume-clean", "--level=5", "--raid-devices=3"} <= set(create), (
        "nothing asked, nothing resynced"
    )
    assert value(create, "-c") == "64"
    assert create[-3:] == ("{disk.m0}", "{disk.m1}", "{disk.m2}")
    assert (journal[-1], main[-1], made.mount_device, made.mount_options) == (
        "{disk.journal}",
        "/dev/md0",
        "/dev/md0",
        "noatime",
    )
    assert made.after_unmount == (("mdadm", "--stop", "--quiet", "/dev/md0"),)
    assert "{disk.main}" not in repr(made)
    assert (
        plan("ext4 on md -l 5 -n 3", seed=1).mkfs[0] != plan("ext4 on md -l 5 -n 3", seed=2).mkfs[0]
    )


def test_btrfs_on_an_array_takes_it_as_one_of_its_disks() -> None:
    made = plan("btrfs-raid1 on md -l 1 -n 2")
    assert made.mkfs[1][-2:] == ("/dev/md0", "{disk.mirror}")
    assert made.mount_options == "device={disk.mirror}"


def test_no_mkfs_asks_or_takes_hours() -> None:
    quiet = {
        "f2fs": "-f",
        "jfs": "-q",
        "nilfs2": "-f",
        "reiserfs": "-q",
        "ntfs3": "-Q",
        "vfat": "-I",
    }
    for text, flag in quiet.items():
        assert flag in plan(text).mkfs[0]
    assert plan("reiserfs").mkfs[0].count("-f") == 2, "once still asks"


def test_the_cleaner_of_nilfs2_runs_only_where_the_summary_says_so() -> None:
    for profile in (profile for profile in catalogue() if profile.type == "nilfs2"):
        made = plan_format(profile, disk_size_bytes=GIB, seed=1)
        runs = [command[0] for command in made.background] == ["nilfs_cleanerd"]
        assert runs is ("no cleaner" not in profile.summary)


@pytest.mark.parametrize(
    ("text", "sector"),
    [
        ("xfs", "size=4096"),
        ("xfs -s size=512", "size=512"),
        ("xfs -b size=4k", "size=4096"),
        ("xfs -b size=1024", None),
        ("xfs -b size=2k", None),
        ("xfs -d sectsize=512", None),
        ("xfs -b size=0x1000", None),
    ],
)
def test_xfs_sector_size_is_what_mkfs_would_choose_on_a_512e_disk(
    text: str, sector: str | None
) -> None:
    command = plan(text).mkfs[0]
    if sector is None:
        assert "-s" not in command
    else:
        assert value(command, "-s") == sector


def test_btrfs_takes_all_disks() -> None:
    made = plan("btrfs-raid1 -o noatime")
    assert made.mkfs[0][-2:] == ("{disk.main}", "{disk.mirror}")
    assert made.mount_options == "noatime,device={disk.mirror}"


@pytest.mark.parametrize(
    ("text", "size_mib", "fits"),
    [
        ("xfs", 299, False),
        ("xfs", 300, True),
        ("btrfs", 108, False),
        ("btrfs", 109, True),
        ("btrfs -m single", 64, True),
        ("ext4", 7, False),
        ("ext4", 8, True),
        ("ext2", 8, True),
        ("f2fs", 51, False),
        ("f2fs", 52, True),
        ("jfs", 15, False),
        ("jfs", 16, True),
        ("nilfs2", 128, False),
        ("nilfs2", 129, True),
        ("nilfs2 -B 16", 16, True),
        ("reiserfs", 32, False),
        ("reiserfs", 33, True),
        ("reiserfs -j {disk.journal}", 16, True),
        ("ntfs3", 1, False),
        ("ntfs3", 2, True),
        ("exfat", 3, False),
        ("exfat", 4, True),
    ],
)
def test_too_small_disks_are_refused_up_front(text: str, size_mib: int, fits: bool) -> None:
    if fits:
        plan(text, disk_size_bytes=size_mib << 20)
        return
    with pytest.raises(InputError, match=f"a disk of {size_mib} MiB is too small") as caught:
        plan(text, disk_size_bytes=size_mib << 20)
    assert caught.value.remedy is not None
    assert "--size" in caught.value.remedy


def test_known_types_without_a_family_are_said_to_come_later() -> None:
    for type_ in LATER:
        profile = resolve(f"{type_} -o noatime")
        because = unsupported_reason(profile)
        assert because is not None
        assert type_ in because
        assert LATER[type_] in because
        with pytest.raises(InputError, match="cannot format it yet"):
            plan_format(profile, disk_size_bytes=GIB, seed=1)
    assert unsupported_reason(resolve("ext4")) is None


def test_families_do_not_overlap() -> None:
    types = [type_ for family in FAMILIES for type_ in family.TYPES]
    assert len(types) == len(set(types))
    assert not set(types) & set(LATER)
    assert known_types() == sorted([*types, *LATER])
    assert all(family_of(type_) is None for type_ in LATER)


def test_every_type_has_profiles_by_name() -> None:
    """The twelve file systems of issue 4 and their external journals have profiles."""
    twelve = {
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "f2fs",
        "jfs",
        "nilfs2",
        "reiserfs",
        "ntfs3",
        "exfat",
        "vfat",
    }
    assert {profile.type for profile in catalogue()} == twelve
    assert {profile.array.level for profile in catalogue() if profile.array is not None} == {
        "0",
        "1",
        "5",
        "6",
        "10",
    }
    assert {f"{type_}-noatime" for type_ in twelve} <= {profile.name for profile in catalogue()}
    two_disks = {
        profile.type
        for profile in catalogue()
        if len(profile.disks) == 2 and profile.disks[1].name == "journal"
    }
    assert two_disks == {"ext3", "ext4", "xfs", "jfs", "reiserfs"}


def test_catalogue_names_what_is_published() -> None:
    """The profiles come from published.md, sections J, X, R, S and N, for ext2, ext3, ext4, xfs and
    btrfs."""
    names = {profile.name for profile in catalogue()}
    for journal in ("ext4", "ext4-nojournal"):
        assert {
            f"{journal}-{atime}" for atime in ("strictatime", "relatime", "noatime", "lazytime")
        } <= names
    assert {"ext2", "ext3", "ext4", "xfs", "btrfs"} <= names
    assert {
        "btrfs-compress-lzo",
        "btrfs-compress-lzo-autodefrag",
        "btrfs-raid1",
        "ext4-noatime-root",
        "ext4-external-journal-data",
    } <= names
    refused = {profile.name for profile in catalogue() if profile.refused}
    assert refused == {"ext4-async-commit", "ext4-external-journal-async-commit"}
    assert all("3.19" in resolve(name).refused for name in refused)


GOOD = """
[one]
spelling = "ext4 -J device={disk.journal}"
summary = "one line"
after_mount = [["chattr", "+A", "{dir}"]]
disks = { journal = { size_mib = 64 } }
"""


def test_a_data_file_is_read() -> None:
    (profile,) = read_catalogue("x.toml", GOOD)
    assert profile.name == "one"
    assert profile.after_mount == (("chattr", "+A", "{dir}"),)
    assert [(disk.name, disk.size_bytes) for disk in profile.disks] == [
        ("main", 0),
        ("journal", 64 << 20),
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("summary", "sumary", r"one\.sumary: no such field; there are spelling, summary"),
        ('summary = "one line"', "", r"one\.summary is missing"),
        ('"one line"', '"""two\nlines"""', r"one\.summary: must be one line"),
        ('"one line"', "3", r"one\.summary is a number, not a string"),
        ("[one]", "[One]", "a name is lower-case"),
        ('"ext4 -J', '"udf -J', r"one\.spelling: must begin with a type that has a family"),
        ('"ext4 -J', '"ext4 -Z -J', r"one\.spelling: flags: option -Z"),
        (
            '[["chattr", "+A", "{dir}"]]',
            '["chattr"]',
            r"one\.after_mount\[0\] is a string, not a list",
        ),
        (
            "size_mib = 64",
            "size = 64",
            r"one\.disks\.journal\.size: no such field; there are size_mib",
        ),
        (
            "size_mib = 64",
            "size_mib = -1",
            r"one\.disks\.journal\.size_mib is less than 0",
        ),
        (
            "size_mib = 64",
            "size_mib = true",
            r"one\.disks\.journal\.size_mib is true or false, not a whole number",
        ),
        ('[["chattr", "+A", "{dir}"]]', "[[]]", r"one\.after_mount\[0\] is empty"),
        ('[["chattr", "+A", "{dir}"]]', "[[1]]", r"one\.after_mount\[0\]\[0\] is a number"),
        (
            "[one]",
            '[one]\nspeling = "x"',
            r"one\.speling: no such field",
        ),
        ("[one]", "[one", "x.toml:"),
        ("[one]", "one = 3\n[two]", "one is a number, not an object"),
    ],
)
def test_data_files_are_checked_field_by_field(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_catalogue("x.toml", GOOD.replace(old, new, 1))
    assert "x.toml" in str(caught.value)
