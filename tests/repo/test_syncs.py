"""No test and no benchmark calls sync(2), which writes back every file system of the machine. It
would end other tests' delays, and add requests to cells that are measured at the same time."""

import re

import pytest
from tests.repo.test_repository import ROOT, repository_files

PLACES = ("tests/", "benches/", "fuzz/", "examples/", "docs/", "README.md", "python/fscost/")
"""Everything whose lines tests run, besides the tests of the crates. The agent calls sync(2) only
as a guest's first process."""
EXCEPTIONS = {
    "tests/repo/test_syncs.py": "its examples",
    "tests/whole/test_outside_syncs.py": "long: `make soak` runs it, after the other tests",
}
SUFFIXES = {".py", ".rs", ".sh", ".toml", ".md", ".c"}
CALL = re.compile(r"\b(?:os\.|libc\.|libc::|fs::)sync\(")
COMMAND = re.compile(
    r"""
    (?: ^ | [;&|] | \b(?:do|then|else) | \{[ ] ) \s* sync (?: \s* (?: [;&|] | $ ) | ["'] )
    | ["'] \s* sync \s* [;&]
    """,
    re.VERBOSE | re.MULTILINE,
)
"""`sync` without a file, as a command in a line of shell. A string that is nothing but this word is
a name of something, such as a mount option."""


def syncs(text: str) -> list[str]:
    return [found[0].strip() for pattern in (CALL, COMMAND) for found in pattern.finditer(text)]


def test_only_one_file_system_is_synced() -> None:
    found = {}
    for path in repository_files():
        name = str(path.relative_to(ROOT))
        is_crates_test = re.match(r"crates/\w+/(?:tests|examples|benches)/", name)
        if path.suffix in SUFFIXES and (name.startswith(PLACES) or is_crates_test):
            found[name] = syncs(path.read_text())
    for name in EXCEPTIONS:
        assert found.pop(name), f"{name} syncs nothing any more"
    assert {name: lines for name, lines in found.items() if lines} == {}, (
        "call syncfs or fsync, or `sync -f .` or `sync FILE` in a shell"
    )


@pytest.mark.parametrize(
    "text",
    [
        "os.sync()",
        "unsafe { libc::sync() }",
        "rustix::fs::sync();",
        'work = "echo hi >a; sync"',
        "echo hi >a && sync && mv a b",
        "set -e\nmkdir d\nsync\nrm -r d",
        '"sync; rm a"',
        "for i in 1 2; do sync; done",
        "while :; do echo >a; sync & done",
        "{ sync; }",
    ],
)
def test_each_way_to_sync_everything_is_found(text: str) -> None:
    assert syncs(text)


@pytest.mark.parametrize(
    "text",
    [
        "os.fsync(file)",
        "self.sync()",
        'settle="sync"',
        '("ext4", "sync", "dirsync")',
        "echo hi >a; sync -f .; sync a",
        'while :; do\n  sync "$name"\ndone',
        'metavar="sync|remount"',
        "fio --fsync=1; a_sync; sync_calls",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert syncs(text) == []
