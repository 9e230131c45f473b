"""Words that mkfs or the kernel refuses, and the suggested corrections."""

import pytest

from fscost import profile
from fscost.errors import InputError


@pytest.mark.parametrize(
    ("spelled", "kind", "words"),
    [
        ("ext4 -o noatim", "mount", "'noatim': did you mean noatime"),
        ("xfs -o logbsise=64k", "mount", "'logbsise': did you mean logbsize"),
        ("ext4 -O ^has_jurnal", "mkfs", "'has_jurnal': did you mean has_journal"),
        ("ext4 -O has_journal,fast_comit", "mkfs", "'fast_comit': did you mean fast_commit"),
    ],
)
def test_a_close_word_is_suggested(spelled: str, kind: str, words: str) -> None:
    assert words in str(profile.suggestion(profile.resolve(spelled), kind))


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("ext4 -o noatime", "mount"),
        ("ext4", "mount"),
        ("ext4 -O qqqqq", "mkfs"),
        ("ext4 -o noatim", "mkfs"),
    ],
)
def test_nothing_is_suggested_for_what_is_known_or_like_nothing(spelled: str, kind: str) -> None:
    assert profile.suggestion(profile.resolve(spelled), kind) is None


@pytest.mark.parametrize(
    ("spelled", "words"),
    [
        ("ext4 -b 3000", "-b 3000 is not a block size"),
        ("ext4 -L 12345678901234567", "more than 16 bytes"),
        ("ext4 -T nosuch", "-T nosuch is not in /etc/mke2fs.conf"),
        ("ext4 -T smal", "did you mean small"),
    ],
)
def test_what_mke2fs_would_change_is_refused(spelled: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        profile.plan_format(profile.resolve(spelled), disk_size_bytes=1 << 30, seed=0)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "spelled",
    ["ext4 -b 1024", "ext4 -L 1234567890123456", "ext4 -T news", "ext4 -T small,largefile"],
)
def test_what_mke2fs_takes_is_not(spelled: str) -> None:
    profile.plan_format(profile.resolve(spelled), disk_size_bytes=1 << 30, seed=0)


@pytest.mark.parametrize(
    ("spelled", "mib"), [("ext4 -O ^has_journal", 2), ("ext2", 1), ("ext4", 8), ("ext2 -j", 8)]
)
def test_small_disks_suffice_where_mke2fs_takes_them(spelled: str, mib: int) -> None:
    profile.plan_format(profile.resolve(spelled), disk_size_bytes=mib << 20, seed=0)
    if mib == 8:
        with pytest.raises(InputError, match="no room for a journal"):
            profile.plan_format(profile.resolve(spelled), disk_size_bytes=7 << 20, seed=0)


@pytest.mark.parametrize(
    ("spelled", "words"),
    [
        ("ext4 -o data=jornal", "did you mean journal"),
        ("btrfs -o compress=zsdt:3", "did you mean zstd"),
        ("ext4 -o data=journal,commit=30", "None"),
    ],
)
def test_values_of_options_are_corrected_too(spelled: str, words: str) -> None:
    assert words in str(profile.suggestion(profile.resolve(spelled), "mount"))
