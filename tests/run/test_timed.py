"""Times of modelled disks: utilisation and queue depth match values computed by hand."""

import numpy as np
import pytest

from fscost.run.after.timed import Requests, _histogram, _values, least_wall_s


def requests(*rows: tuple[str, int, int]) -> Requests:
    """Return requests from rows of operation, submission time and latency."""
    numbers = [np.array([row[at] for row in rows], np.int64) for at in (1, 2)]
    zeroes = np.zeros(len(rows), np.int64)
    return Requests(np.array([row[0] for row in rows]), *numbers, zeroes, zeroes)


def test_requests_side_by_side() -> None:
    # 0–10: first request alone; 10–20: both; 20–40: second alone; idle until 90; 90–100: flush
    # alone.
    found = dict(_values(requests(("write", 0, 20), ("read", 10, 30), ("flush", 90, 10)), 100))
    assert found["device_utilisation"] == pytest.approx(0.5)
    assert found["queue_depth_mean"] == pytest.approx((10 + 2 * 10 + 20 + 10) / 50)
    assert found["queue_depth_max"] == 2
    assert found["write_latency_ns_p50"] == 20
    assert found["flush_latency_ns_p99"] == 10


def test_one_after_the_other_is_a_depth_of_one() -> None:
    found = dict(_values(requests(("write", 0, 10), ("write", 10, 10)), 40))
    assert found["queue_depth_max"] == 1
    assert found["device_utilisation"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wall_s", "least"),
    [(0.5, 0.3), (None, 0.45), (0.7, 0.45), (0.1, 0.0)],
)
def test_the_lower_bound_is_of_the_time_that_wall_s_measures(
    wall_s: float | None, least: float
) -> None:
    """The interval lasts 0.65 s from mark to mark."""
    interval = {"recorded_ns": 650_000_000, "modelled_ns": 450_000_000}
    assert least_wall_s(interval, wall_s) == pytest.approx(least)


def test_the_lower_bound_is_at_most_the_time_itself() -> None:
    """A drive that reorders its queue may take longer with more requests to choose from."""
    interval = {"recorded_ns": 650_000_000, "modelled_ns": 700_000_000}
    assert least_wall_s(interval, 0.5) == 0.5


def test_a_histogram_counts_every_request_once() -> None:
    found = _histogram(np.array([1, 2, 3, 4, 5, 1024]))
    assert found["at_most_ns"] == [1 << power for power in range(11)]
    assert found["requests"] == [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1]
