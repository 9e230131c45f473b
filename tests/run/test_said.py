"""Numbers that a step prints about itself."""

from pathlib import Path

from fscost import workload
from fscost.lab.base import CellResult, Sample
from fscost.matrix import Cell
from fscost.profile import resolve
from fscost.run.after import said

OUTPUT = b"""=== mkfs
fscost outcome=1
=== before
fscost outcome=0
 fscost outcome=1
fscost outcome=1 or more
fscost device_write_bytes=7
fscost unheard_of=7
=== write
\xff\xfe
fscost lifetime_counter_bytes=4096
fscost outcome=1
"""


def test_only_its_own_metrics_and_steps_count(tmp_path: Path) -> None:
    output = tmp_path / "output.log"
    output.write_bytes(OUTPUT)
    found = CellResult(Cell(resolve("ext4"), workload.resolve("big-and-small"), 0, 1, 0), "done")
    found.samples = [
        Sample(each, each == "write", "", "wall_s", "s", 1.0) for each in ("before", "write")
    ]
    known = list(found.samples)
    said.add_to(found)
    assert found.samples == known
    found.output = output
    said.add_to(found)
    assert found.samples[len(known) :] == [
        Sample("before", False, "", "outcome", "count", 0.0),
        Sample("write", True, "", "lifetime_counter_bytes", "bytes", 4096.0),
        Sample("write", True, "", "outcome", "count", 1.0),
    ]
