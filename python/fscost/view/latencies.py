"""Distributions of the durations of requests, fsyncs and pauses, from the histograms of cells. A
manifest is untrusted, so only histograms in the form that fscost writes are used."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from fscost.results import CellRecord, RunResults
from fscost.view.grid import plain
from fscost.view.tables import Table

_OPS = ("read", "write", "flush")
_CALLS = {"fsync": "fsync and fdatasync of the commands", "pause": "pauses of the probe"}
_MOST_BINS = 400
_SCHEMA = pa.schema(
    [
        ("what", pa.string()),
        ("profile", pa.string()),
        ("at_most_ns", pa.int64()),
        ("requests", pa.int64()),
        ("longer", pa.float64()),
    ]
)


def latencies(results: RunResults) -> Table:
    """Return a line for each bin of each profile, over all repetitions. `requests`: number of
    durations in the bin; `longer`: share of all durations above it."""
    found: dict[tuple[str, str], Counter[int]] = {}
    for cell in results.manifest.done:
        for what, at_most_ns, requests in _of_cell(cell):
            found.setdefault((what, plain(cell.profile)), Counter()).update(
                dict(zip(at_most_ns, requests, strict=True))
            )
    rows = []
    for (what, profile), bins in found.items():
        whole = left = sum(bins.values())
        for bound_ns in sorted(bins):
            left -= bins[bound_ns]
            values = (what, profile, bound_ns, bins[bound_ns], left / whole)
            rows.append(dict(zip(_SCHEMA.names, values, strict=True)))
    rows.sort(key=lambda row: (not row["what"].startswith(tuple(_CALLS.values())), row["what"]))
    data = pa.Table.from_pylist(rows, _SCHEMA)
    title = "Distribution of latencies, all measured phases and repetitions"
    return Table("latencies", title, data, {"at_most_ns": "ns", "longer": "share"})


def _of_cell(cell: CellRecord) -> Iterator[tuple[str, list[int], list[int]]]:
    guest = cell.facts.get("guest")
    virtual = ", virtual time" if isinstance(guest, dict) and guest.get("is_emulated") else ""
    for name, words in _CALLS.items():
        yield from _histogram(f"{words}{virtual}", _dict(cell.facts.get("time_histograms")), name)
    disks = _dict(cell.facts.get("latency_histograms"))
    for disk, histograms in disks.items():
        for op in _OPS:
            yield from _histogram(plain(f"{op} requests of disk {disk}"), _dict(histograms), op)


def _histogram(
    what: str, histograms: Mapping[str, Any], name: str
) -> Iterator[tuple[str, list[int], list[int]]]:
    match histograms.get(name):
        case {"at_most_ns": [*at_most_ns], "requests": [*requests]}:
            numbers = [*at_most_ns, *requests]
            is_sound = all(type(each) is int and 0 <= each < 1 << 62 for each in numbers)
            if is_sound and len(at_most_ns) == len(requests) <= _MOST_BINS and sum(requests):
                yield what, at_most_ns, requests


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
