"""`explain --fsyncs`: each fsync of two files that take turns has the commit that it forced."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.whole.test_explained import PROGRAM, compare, on

from fscost.results import load

pytestmark = pytest.mark.root
TURNS = 12
SCRIPT = f"""
import glob, os
def commits():
    \"\"\"Transactions of this file system's journal so far, as the kernel counts them.\"\"\"
    device = os.stat(".").st_dev
    numbers = f"{{os.major(device)}}:{{os.minor(device)}}"
    name = os.path.basename(os.path.realpath("/sys/dev/block/" + numbers))
    found = glob.glob(f"/proc/fs/jbd2/{{name}}-*/info")
    return int(open(found[0]).read().split()[0]) if found else 0
files = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in "ab"]
before = commits()
for turn in range({TURNS}):
    for file, size in zip(files, (4096, 65536)):
        os.write(file, bytes([turn + 1]) * size)
        os.fsync(file)
print("COMMITS", commits() - before)
"""
PROFILES = ("ext4", "ext4 -O fast_commit", "xfs", "btrfs")


def explain(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return by profile the command's output."""
    command = [*PROGRAM, "explain", str(folder), "--json", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return {each["profile"]: each for each in json.loads(ended.stdout)["recordings"]}


def test_files_that_take_turns_are_charged_in_turn(tmp_path: Path) -> None:
    (tmp_path / "turns.py").write_text(SCRIPT)
    folder = tmp_path / "run"
    options = ("--size", "400M", *on(*PROFILES))
    compare(folder, *options, "--", f"python3 {tmp_path}/turns.py")
    found = explain(folder, "--fsyncs")
    assert set(found) == set(PROFILES)
    for profile, each in found.items():
        calls = each["fsyncs"]["calls"]
        assert [call["path"] for call in calls] == ["/a", "/b"] * TURNS, profile
        assert all(call["name"].startswith("python3") for call in calls), profile
        assert all(call["took_ns"] > 0 for call in calls), profile
        without = [call for call in calls if not call["commits"] or not call["commit_write_bytes"]]
        # xfs's own threads may force its log between a write and its fsync, which then has nothing
        # to force (fs/xfs/xfs_trans_ail.c, xfs_log_worker in fs/xfs/xfs_log.c).
        assert len(without) <= (2 if profile == "xfs" else 0), (profile, without)
    # The kernel's own count: each call had one transaction, and the first program none before.
    output = next(cell.output for cell in load(folder).manifest.done if cell.profile == "ext4")
    lines = (folder / output).read_text().splitlines()
    counted = int(next(line.split()[1] for line in lines if line.startswith("COMMITS")))
    calls = found["ext4"]["fsyncs"]["calls"]
    assert sum(call["commits"] for call in calls) == counted == 2 * TURNS
    before, after = (explain(folder, "--by", "file", *more) for more in ((), ("--charge-commits",)))
    for profile in PROFILES:
        sums = [
            {group["name"]: group["write_bytes"] for group in each[profile]["groups"]}
            for each in (before, after)
        ]
        assert sum(sums[0].values()) == sum(sums[1].values()) == before[profile]["write_bytes"]
        nobody = [each.get("(of no single file)", 0) for each in sums]
        forced = sum(call["commit_write_bytes"] for call in found[profile]["fsyncs"]["calls"])
        assert nobody[0] - forced <= nobody[1] < nobody[0] / 2, profile
