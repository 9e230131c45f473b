"""A real workload on models of devices: every page is accounted for, and the host's bytes equal the
kernel's."""

from pathlib import Path
from typing import Any

import pytest
from tests.whole.test_explained import compare, on

from fscost import analyze, wear

pytestmark = pytest.mark.root
DEVICES = ("samsung-870-evo-1tb", "first-generation-32gb", "sd-card-32gb", "emmc-8gb")
COLUMN = "sd-card-32gb"
REWRITES = (
    "for i in $(seq 300); do dd if=/dev/urandom of=f bs=4k count=1 seek=$((i * 7919 % 2000))"
    " conv=notrunc,fsync status=none; done"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("wear") / "run"
    prepare = "head -c 8M /dev/urandom > f; cat f > g; cat g > /dev/null"
    _, values = compare(
        folder,
        "--size",
        "64M",
        "--prepare",
        prepare,
        "--ssd",
        COLUMN,
        *on("ext4", "xfs -m reflink=0"),
        "--",
        "sh",
        "-c",
        REWRITES,
    )
    return folder, values


@pytest.mark.parametrize("device", DEVICES)
def test_pages_are_conserved_by_each_grouping(run: tuple[Path, Any], device: str) -> None:
    folder, values = run
    for recording in sorted(folder.glob("cells/*/recording.fscost")):
        profile = "xfs -m reflink=0" if "xfs" in recording.parent.name else "ext4"
        (source,) = wear.sources(recording, is_explained=True)
        explained = analyze.explain(recording).within(source.measured).sums("cause").to_pylist()
        totals = set()
        # Groupings do not depend on the device: one with all of them suffices.
        for by in wear.By if device == COLUMN else (wear.By.CAUSE,):
            found = wear.measure(source, wear.find(device), by=by)
            assert found.host_write_bytes == values[profile, "total", "device_write_bytes"]
            assert sum(each.host_write_bytes for each in found.charges) == found.host_write_bytes
            if by is wear.By.CAUSE:
                # The native join with the requests and the sum in Arrow give the same bytes for
                # each cause.
                written = {
                    each.name: each.host_write_bytes
                    for each in found.charges
                    if each.host_write_bytes
                }
                assert written == {row["cause"]: row["length_sum"] for row in explained}
            programs = sum(each.program_bytes + each.padding_bytes for each in found.charges)
            for copies in ("moved_bytes", "caused_bytes"):
                assert sum(getattr(each, copies) for each in found.charges) == pytest.approx(
                    found.copy_bytes
                ), by
            assert programs + found.copy_bytes == pytest.approx(found.nand_write_bytes), by
            assert found.nand_write_bytes >= found.host_write_bytes
            totals.add(found.nand_write_bytes)
            if device == COLUMN:
                assert values[profile, "total", "nand_write_bytes"] == found.nand_write_bytes
                assert values[profile, "total", "lifetime_years"] > 0
        assert len(totals) == 1, "what is charged must not change what is done"
