"""btrfs: an fsync writes names to a log, but not the directories above them that were renamed since
the last commit. A path must be one that the file had."""

from pathlib import Path

import pytest
from tests.analysis.btrfs.test_btrfs import MIB, record, rows_of

from fscost import profile
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

WRITES = "head -c 100000 /dev/urandom | dd conv=fsync status=none of="
BEFORE = f"""mkdir a; sync -f .; mv a b; sleep 0.05; {WRITES}b/new
mkdir b/sub; {WRITES}b/sub/new; rm -r b/sub; touch b/other; sync -f ."""
AFTER = f"""mkdir -p c/sub; sync -f .; {WRITES}c/new; {WRITES}c/sub/new; sleep 0.05
mv c d; rm -r d/sub; sync -f ."""


def test_a_path_is_one_that_the_file_had(tmp_path: Path) -> None:
    steps = (Step("before", BEFORE), Step("after", AFTER))
    recording = record(
        profile.resolve("btrfs"), Workload("renames", steps, disk_bytes=MIB), tmp_path, 256
    )
    rows = [row for row in rows_of(recording) if row.structure in ("file_data", "log_tree")]
    found = {(row.path, row.doubtful) for row in rows if row.structure == "file_data"}
    # A file's path is doubtful if its directory was changed after the file.
    before, after = {"/b/new", "/b/sub/new"}, {"/d/new", "/d/sub/new"}
    assert found == {(path, path in after) for path in before | after}
    assert {row.path for row in rows if row.path} == before | after
