"""Summary rows from a table of samples."""

import pyarrow as pa

from fscost.stats import Verdict, half_widths, summarise, to_table


def samples(entries: list[tuple[str, int, str, str, float]], disk: str = "") -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "profile": p,
                "repetition": r,
                "phase": phase,
                "measured": phase != "mkfs",
                "disk": disk,
                "metric": m,
                "unit": "bytes",
                "value": v,
            }
            for p, r, phase, m, v in entries
        ]
    )


TABLE = samples(
    [
        *[("ext4", r, "total", "device_write_bytes", 100.0 + r) for r in range(3)],
        *[("xfs", r, "total", "device_write_bytes", 50.0 + r / 2) for r in range(3)],
        *[("xfs", r, "mkfs", "device_write_bytes", 7.0) for r in range(3)],
        ("xfs", 0, "total", "device_flushes", 4.0),
    ]
)


def test_one_row_for_each_profile_phase_and_metric() -> None:
    rows = summarise(TABLE, "ext4")
    assert [(row.profile, row.phase, row.metric, row.n, row.median) for row in rows] == [
        ("ext4", "total", "device_write_bytes", 3, 101.0),
        ("xfs", "total", "device_write_bytes", 3, 50.5),
        ("xfs", "mkfs", "device_write_bytes", 3, 7.0),
        ("xfs", "total", "device_flushes", 1, 4.0),
    ]
    assert [row.measured for row in rows] == [True, True, False, True]


def test_ratios_are_to_the_baseline_and_it_has_none() -> None:
    ext4, xfs, mkfs, flushes = summarise(TABLE, "ext4")
    assert (ext4.ratio, ext4.verdict, ext4.ratio_n) == (None, None, None)
    assert (xfs.ratio, xfs.verdict, xfs.ratio_n) == (0.5, Verdict.LOWER, 3)
    assert (mkfs.ratio, mkfs.because) == (None, "no repetition has both")
    assert (flushes.low, flushes.high) == (None, None)


def test_without_a_baseline_there_are_no_ratios() -> None:
    assert all(row.ratio is None and row.verdict is None for row in summarise(TABLE))


def test_single_disks_do_not_count_twice() -> None:
    more = pa.concat_tables(
        [TABLE, samples([("xfs", 0, "total", "device_write_bytes", 1.0)], disk="journal")]
    )
    assert summarise(more, "ext4") == summarise(TABLE, "ext4")
    assert half_widths(more, "device_write_bytes") == half_widths(TABLE, "device_write_bytes")


def test_an_empty_table_has_no_rows() -> None:
    assert summarise(TABLE.slice(0, 0), "ext4") == []


def test_rows_become_a_table() -> None:
    table = to_table(summarise(TABLE, "ext4"))
    assert table.column("ratio").to_pylist()[1] == 0.5
    assert table.column("verdict").to_pylist() == [None, "lower", "undefined", "undefined"]


def test_half_widths_are_the_totals() -> None:
    found = half_widths(TABLE, "device_write_bytes")
    assert found["xfs"].n == 3
    assert found["xfs"].median == 50.5
