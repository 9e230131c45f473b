"""A live run on models, replayed offline on the same models."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from fscost import latency

Run = Callable[..., Any]
WORK = (
    "for i in 1 2 3; do echo hi >$i; sync $i; done;"
    " fio --name=r --filename=file --size=4M --bs=4k --direct=1 --ioengine=libaio --rw=randrw"
    " --iodepth=8 --number_ios=60 >/dev/null"
)
CATEGORIES = {"write_zeroes": "write", "punch": "discard"}


@pytest.mark.root
@pytest.mark.parametrize("model", ["hdd-7200", "nvme"])
def test_a_live_run_and_its_replay_agree(fscost: Run, tmp_path: Path, model: str) -> None:
    """Given each request's submission time and the completions that it waits for, the replay
    matches the live run to the nanosecond."""
    arguments = ["compare", "--on", "ext4", "--size", "64M", "--lab", "native", "--out", "run"]
    arguments += ["--disk", f"main={model}", "--max-repetitions", "1", "--json"]
    rows = json.loads(fscost(*arguments, "--", "sh", "-c", WORK).stdout)["rows"]
    total = {row["metric"]: row["median"] for row in rows if row["phase"] == "total"}
    [cell] = json.loads((tmp_path / "run/manifest.json").read_text())["cells"]
    table = pq.read_table(tmp_path / "run/cells/ext4.0/requests.parquet")
    latency_ns = table["latency_ns"].to_numpy().astype(np.uint64)
    texts = [(model, latency.find(model).text)]
    recording = tmp_path / "run" / cell["recording"]

    def replayed(waits: latency.Waits) -> list[dict[str, Any]]:
        return latency.live(recording, texts, waits, cell["seed"])

    in_order = replayed(latency.Waits.ALL)
    ops = np.array([CATEGORIES.get(op, op) for op in table["op"].to_pylist()])
    for op in set(ops):
        found = sum(each["disks"][0][op]["sum_ns"] for each in in_order)
        assert found == int(latency_ns[ops == op].sum()), op
    for each in in_order:
        assert each["modelled_ns"] == each["recorded_ns"], each["name"]
    [least] = [each for each in replayed(latency.Waits.FLUSHES) if each["name"] == "run"]
    outside_s = least["recorded_ns"] / 1e9 - total["wall_s"]
    assert outside_s >= 0, "the recorded interval ends at marks, outside of what wall_s times"
    # A hard disk that may choose among more requests may take a longer way; the run itself is then
    # the better order.
    bound_s = min(total["wall_s"], least["modelled_ns"] / 1e9 - outside_s)
    assert total["least_wall_s"] == pytest.approx(bound_s)
    assert 0 < total["least_wall_s"] <= total["wall_s"]
    shown = fscost("show", "run", columns=200).stdout
    assert re.search(
        r"Time on these models; at least: .*\nprofile +time +at least\next4 +\S+ ", shown
    )
