"""Percentiles of fsync times, from values and their counts."""

import json
from typing import Any

import numpy as np
import pytest

from fscost.lab.cell.events import Interval, ProtocolError, parse
from fscost.lab.cell.samples import histograms, samples, totals

from .conftest import interval_event

NAMES = ("p50", "p95", "p99", "max")


def interval(name: str, times: Any, *, measured: bool = True) -> Interval:
    event = interval_event(name, measured, sync_times_ns=times)
    found = parse(json.dumps(event).encode())
    assert isinstance(found, Interval)
    return found


def expected(*times: tuple[int, int]) -> list[float]:
    """Return numpy's percentiles over all single values."""
    values = np.repeat(*np.array(times).T)
    percentiles = [
        np.percentile(values, percent, method="inverted_cdf") for percent in (50, 95, 99)
    ]
    return [float(each) for each in (*percentiles, values.max())]


def test_percentiles_are_those_of_every_single_call() -> None:
    one, other = [(300, 7), (10, 90), (2000, 3)], [(10, 5), (20, 500)]
    phases = [
        interval("one", one),
        interval("other", other),
        interval("unmeasured", [[777_777, 1]], measured=False),
        interval("none", []),
        interval("unknown", None),
    ]
    found: dict[str, list[float]] = {}
    for each in samples(phases):
        if each.metric.startswith("fsync_latency_ns_"):
            found.setdefault(each.phase, []).append(each.value)
    assert found == {
        "one": expected(*one),
        "other": expected(*other),
        "unmeasured": [777_777.0] * 4,
    }
    whole = totals(phases)
    assert [each.metric for each in whole] == [f"fsync_latency_ns_{name}" for name in NAMES]
    assert [each.value for each in whole] == expected(*one, *other)
    assert {each.unit for each in whole} == {"ns"}
    assert {each.unit for each in totals(phases, is_emulated=True)} == {"virtual_ns"}
    assert totals(phases[-2:]) == []


@pytest.mark.parametrize("times", [1, [1], [[1]], [[1, -1]], [[1, 2, 3]], [[1, "2"]], {"1": 2}])
def test_what_is_no_list_of_pairs_is_refused(times: Any) -> None:
    with pytest.raises(ProtocolError, match="sync_times_ns"):
        interval("one", times)


def test_counts_that_fit_no_64_bits_when_added_are_counted_all_the_same() -> None:
    largest = (1 << 53) - 1
    whole = totals([interval("one", [[5, largest], [6, largest]]) for _ in range(2000)])
    assert [each.value for each in whole] == [5, 6, 6, 6]


def test_a_histogram_has_every_call_of_the_measured_phases() -> None:
    phases = [
        interval("one", [(1, 2), (1000, 7), (1024, 5), (1025, 1)]),
        interval("other", [(1000, 3)]),
        interval("unmeasured", [(777_777, 1)], measured=False),
        interval("unknown", None),
    ]
    found = histograms(phases)
    assert found.keys() == {"fsync"}
    # 1024 is a bound; the next bound is a quarter of a doubling above.
    assert found["fsync"] == {"at_most_ns": [1, 1024, 1218], "requests": [2, 15, 1]}
    assert histograms([interval("none", [])]) == {}
