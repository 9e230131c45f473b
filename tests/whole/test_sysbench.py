"""The workload sysbench-fileio sends the file system the requests that its options ask for."""

from pathlib import Path

import pytest
from tests.whole.test_explained import compare, on

pytestmark = pytest.mark.root
BLOCK_BYTES = 16384
"""sysbench's default (--file-block-size)."""
FILES, EVENTS = 16, 200
PROFILES = ("ext4 -o strictatime", "ext4 -o noatime")


def test_sysbench_writes_syncs_and_reads_what_its_options_say(tmp_path: Path) -> None:
    options = {"file_mib": 16, "files": FILES, "requests": EVENTS}
    settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    value, found = compare(
        tmp_path / "run", "--workload", "sysbench-fileio", *settings, *on(*PROFILES)
    )
    assert value["not_explained"] == []
    # Every file is fsynced after each 100 writes, and at the end; each fsync is an event.
    writes = EVENTS - FILES
    for profile in PROFILES:
        random_write, random_read = (
            {
                metric: median
                for (name, phase, metric), median in found.items()
                if (name, phase) == (profile, step)
            }
            for step in ("rndwr", "rndrd")
        )
        assert random_write["program_write_bytes"] // BLOCK_BYTES == writes
        assert random_write["sync_calls"] == 2 * FILES
        assert random_read["program_read_bytes"] // BLOCK_BYTES >= EVENTS
        assert random_read["program_write_bytes"] < BLOCK_BYTES
        # The caches were dropped, so reads come from the device.
        assert random_read["device_read_bytes"] > EVENTS * BLOCK_BYTES // 4
        assert random_write["device_write_bytes"] > random_write["program_write_bytes"] // 2
    reads_cost = {profile: found[profile, "rndrd", "device_write_bytes"] for profile in PROFILES}
    assert reads_cost[PROFILES[0]] > reads_cost[PROFILES[1]], "access times"
