"""Distributions of times from the histograms in a run's manifest."""

from pathlib import Path

import pytest
from tests import manifests

from fscost.report.charts import latencies as chart
from fscost.results import CellRecord, RunResults, to_table
from fscost.view.latencies import latencies

FSYNC = {"at_most_ns": [1024, 4096], "requests": [3, 1]}


def run_of(*facts: dict[str, object]) -> RunResults:
    cells = [
        CellRecord(f"a.{number}", "ext4\x1b", number, 1, number, "done", 1.0, *[""] * 4, facts=each)
        for number, each in enumerate(facts)
    ]
    manifest = manifests.made(
        profiles=[{"name": "ext4\x1b"}],
        cells=cells,
    )
    return RunResults(Path("run"), manifest, to_table([]))


def test_repetitions_are_added_up() -> None:
    one = {"time_histograms": {"fsync": FSYNC}}
    other = {"time_histograms": {"fsync": {"at_most_ns": [2048], "requests": [4]}}}
    found = latencies(run_of(one, other)).data.to_pylist()
    assert [(row["at_most_ns"], row["requests"], row["longer"]) for row in found] == [
        (1024, 3, 5 / 8),
        (2048, 4, 1 / 8),
        (4096, 1, 0),
    ]
    assert {row["profile"] for row in found} == {"ext4�"}
    assert {row["what"] for row in found} == {"fsync and fdatasync of the commands"}


def test_disks_follow_calls_and_what_is_late_is_left_out() -> None:
    disks = {"main": {"write": FSYNC, "late": FSYNC}, "journal": {"flush": FSYNC}}
    facts = {
        "time_histograms": {"pause": FSYNC},
        "latency_histograms": disks,
        "guest": {"is_emulated": True},
    }
    found = latencies(run_of(facts)).data["what"].to_pylist()
    assert list(dict.fromkeys(found)) == [
        "pauses of the probe, virtual time",
        "flush requests of disk journal",
        "write requests of disk main",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"time_histograms": 7},
        {"time_histograms": {"fsync": {"at_most_ns": [1, 2], "requests": [1]}}},
        {"time_histograms": {"fsync": {"at_most_ns": [1], "requests": ["1"]}}},
        {"time_histograms": {"fsync": {"at_most_ns": [1], "requests": [-1]}}},
        {"time_histograms": {"fsync": {"at_most_ns": [1], "requests": [0]}}},
        {"time_histograms": {"fsync": {"at_most_ns": [1] * 500, "requests": [1] * 500}}},
        {"latency_histograms": {"main": [FSYNC]}},
    ],
)
def test_what_has_another_form_is_left_out(wrong: dict[str, object]) -> None:
    assert latencies(run_of(wrong)).data.num_rows == 0


def test_a_line_begins_at_all_and_ends_above_none() -> None:
    table = latencies(run_of({"time_histograms": {"fsync": FSYNC}})).data
    [(_, rows)] = chart(table).to_dict()["datasets"].items() or [("", [])]
    assert [(row["at_most_ns"], row["longer"]) for row in rows] == [(512, 1.0), (1024, 0.25)]
