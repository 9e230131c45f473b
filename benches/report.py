"""Cost of a report, against the issue's budget: a recording of 5 million requests as a page in less
than 10 s and 8 MB. The rows are generated here, which leaves out the explanation of the recording
(benches/classify.py measures that). Times are wall time, because a separate process builds the
page's script meanwhile, if it is not in the user's cache."""

import argparse
import json
import sys
import time
from collections.abc import Iterator

import history  # beside this file
import numpy as np
import pyarrow as pa
from altair.utils import schemapi

from fscost import analyze
from fscost.analyze.explain import Mark
from fscost.analyze.rows import SCHEMA
from fscost.report.charts import themed
from fscost.report.figures import of_recording
from fscost.report.html.page import compiled
from fscost.report.html.vega import runtime
from fscost.view.kept import LARGEST, Explained, listed

REQUESTS = 5_000_000
BATCH = 1 << 16
BUDGET_S, BUDGET_BYTES = 10.0, 8_000_000
STRUCTURES = ("file_data", "journal_copy", "inode_table", "directory", "block_bitmap")
CAUSES = ("data", "directory_entries", "allocation", "times", "directory_entries+times")


def rows(count: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield writes of 4 KiB to 64 KiB all over a disk of 64 GiB, in ten minutes."""
    random = np.random.default_rng(seed)
    structures, causes = (pa.array(names) for names in (STRUCTURES, CAUSES))
    paths = pa.array([f"/directory{number % 97}/file{number}" for number in range(10_000)])
    for begin in range(0, count, BATCH):
        size = min(BATCH, count - begin)
        time_ns = np.sort(random.integers(0, 600_000_000_000 * size // count, size))

        def named(values: pa.Array, size: int = size) -> pa.DictionaryArray:
            numbers = pa.array(random.integers(0, len(values), size), pa.int32())
            return pa.DictionaryArray.from_arrays(numbers, values)

        known = {
            "event": pa.array(np.arange(begin, begin + size), pa.uint64()),
            "time_ns": pa.array(time_ns + 600_000_000_000 * begin // count, pa.uint64()),
            "phase": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(size), pa.int32()), pa.array(["work"])
            ),
            "disk": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(size), pa.int32()), pa.array(["main"])
            ),
            "offset": pa.array(random.integers(0, 1 << 24, size) * 4096, pa.uint64()),
            "length": pa.array(random.integers(1, 17, size) * 4096, pa.uint64()),
            "structure": named(structures),
            "cause": named(causes),
            "path": named(paths),
            "atime_alone": pa.array(np.zeros(size, bool)),
            "tree": pa.array(np.zeros(size), pa.uint64()),
            "copy": pa.array(np.zeros(size), pa.uint8()),
            "doubtful": pa.array(np.zeros(size, bool)),
        }
        arrays = [known.get(field.name, pa.nulls(size, field.type)) for field in SCHEMA]
        yield pa.record_batch(arrays, schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    made = list(rows(asked.requests, asked.seed))
    whole = analyze.Explanation(
        lambda: iter(made),
        {"main": "ext"},
        ["work"],
        frozenset({"journal_copy"}),
        marks=[Mark(0, "work")],
    )
    begin = time.perf_counter()
    script = runtime()
    report = analyze.report(whole, ["work"], analyze.By.FILE, LARGEST)
    maps = analyze.maps(whole, ["work"])
    directories = analyze.largest(report.explanation, analyze.By.DIRECTORY, LARGEST)[0]
    files, folders = (listed(groups) for groups in (report.groups, directories))
    tree = analyze.tree(report.explanation)
    each = Explained(
        "ext4", "ext4-0", "0", 0, report.write_bytes, report.findings, maps, files, folders, tree
    )
    added = time.perf_counter()
    with schemapi.debug_mode(False):  # as html_text does
        specs = [
            compiled(themed(figure.chart, "container", is_validated=False))
            for figure in of_recording(each, ())
        ]
    size = len(json.dumps(specs)) + len(script.result())
    end = time.perf_counter()
    print(
        f"{asked.requests:,} requests: {added - begin:.1f} s to add up, {end - added:.1f} s to draw"
        f", {size:,} bytes"
    )
    figures = {"add_s": added - begin, "draw_s": end - added, "bytes": size}
    history.append("report", {"requests": asked.requests} | figures)
    if asked.requests >= REQUESTS and (end - begin > BUDGET_S or size > BUDGET_BYTES):
        sys.exit(f"over the budget of {BUDGET_S:.0f} s and {BUDGET_BYTES:,} bytes")


if __name__ == "__main__":
    main()
