"""The summary: which profile wrote the least, by how much, and which differences do not count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import manifests

from fscost.errors import InputError
from fscost.report import markdown, terminal
from fscost.results import CellRecord, RunResults, to_table
from fscost.results.table import SampleRow, with_totals
from fscost.view import sweep
from fscost.view.per import Per
from fscost.view.run import Choice, answer, view

MIB = 1 << 20
WRITTEN = "device_write_bytes"


def a_run(values: dict[str, list[float]], **more: dict[str, list[float]]) -> RunResults:
    """Return a run with `values` for the bytes each profile wrote, by repetition, and `more` for
    other metrics."""
    rows: list[SampleRow] = []
    units = {"wall_s": "s", "device_flushes": "count", "write_amplification": "ratio"}
    units["lifetime_runs"] = "count"
    for order, (profile, found) in enumerate(values.items()):
        for repetition in range(len(found)):
            of_metric = {
                WRITTEN: found,
                **{name: each[profile] for name, each in more.items() if profile in each},
            }
            cell = [
                SampleRow(
                    cell=f"{profile}.{repetition}",
                    profile=profile,
                    repetition=repetition,
                    seed=0,
                    order=order,
                    phase="run",
                    measured=True,
                    disk="",
                    metric=metric,
                    unit=units.get(metric, "bytes"),
                    value=each[repetition],
                )
                for metric, each in of_metric.items()
            ]
            rows += with_totals(cell)
    manifest = manifests.made(
        name="work",
        profiles=[{"name": name, "type": name.split()[0]} for name in values],
        workload={"name": "work"},
        stopping={"metric": WRITTEN},
        seed=0,
        baseline=next(iter(values)),
    )
    return RunResults(Path("folder"), manifest, to_table(rows))


def mib(*values: float) -> list[float]:
    return [value * MIB for value in values]


def test_only_sums_are_divided_by_the_operations() -> None:
    run = a_run({"ext4": mib(5, 5, 5)}, lifetime_runs={"ext4": [900.0] * 3})
    for metric, part in ((WRITTEN, "10.0 KiB"), ("lifetime_runs", "–")):
        shown = view(run, Choice(metric=metric, per=Per(512, "tx"))).summary
        assert shown.rows[0][shown.header.index("per tx")] == part


def test_a_run_that_lacks_a_kind_of_bytes_has_no_bars() -> None:
    """Samples are untrusted: `unknown_write_bytes` was a KeyError, found by fuzz/readers.py."""
    kinds = ("file_data", "journal", "metadata", "atime", "unknown")
    some = {f"{kind}_write_bytes": {"ext4": mib(1, 1, 1)} for kind in kinds}
    assert view(a_run({"ext4": mib(5, 5, 5)}, **some)).breakdown.grid.rows
    del some["unknown_write_bytes"]
    assert not view(a_run({"ext4": mib(5, 5, 5)}, **some)).breakdown.grid.rows


def test_a_longer_life_is_better() -> None:
    lives = {"ext4": [9.0] * 3, "xfs": [99.0] * 3}
    run = a_run({"ext4": mib(5, 5, 5), "xfs": mib(5, 5, 5)}, lifetime_runs=lives)
    assert [row[0] for row in sweep.pareto(run, WRITTEN, "lifetime_runs").rows] == ["xfs"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"ext4": mib(5, 5, 5)}, "ext4 wrote 5.00 MiB."),
        (
            {"ext4": mib(5, 5, 5), "ext4 -o noatime": mib(3.1, 3.1, 3.1)},
            "ext4 -o noatime wrote the least: 3.10 MiB, 38 % less than ext4.",
        ),
        (
            {"ext4": mib(5, 5, 5), "xfs": mib(2.5, 2.5, 2.5), "btrfs": mib(44, 44, 44)},
            (
                "xfs wrote the least: 2.50 MiB, 50 % less than ext4. "
                "btrfs wrote the most: 44.0 MiB, 8.80 times as much as ext4."
            ),
        ),
        (
            {"ext4": mib(5, 5, 5), "xfs": mib(5, 5, 5)},
            "No difference: every profile wrote 5.00 MiB.",
        ),
        (
            {"ext4": mib(5, 5, 5), "xfs": mib(5.05, 5.05, 5.05)},
            "No difference of 2 % or more: every profile wrote 5.00 MiB to 5.05 MiB.",
        ),
        (
            {"ext4": mib(5, 5, 5), "xfs": mib(5.05, 5.05, 5.05), "btrfs": mib(6, 6, 6)},
            (
                "ext4 and xfs wrote the least: 5.00 MiB. "
                "btrfs wrote the most: 6.00 MiB, 20 % more than ext4."
            ),
        ),
        (
            {"ext4": mib(5, 7, 4), "xfs": mib(6, 5, 5)},
            "No difference found: every profile wrote about 5.00 MiB.",
        ),
        (
            {"ext4": mib(6, 6, 6), "btrfs": mib(3, 4, 9), "xfs": mib(5, 5, 5)},
            (
                "Lowest median: btrfs, 4.00 MiB; a difference from xfs and ext4 is not certain. "
                "Certain: xfs wrote 17 % less than ext4."
            ),
        ),
        (
            {"ext4": mib(5, 6), "xfs": mib(12, 11), "btrfs": mib(4, 9)},
            "Lowest median: ext4, 5.50 MiB; a difference from btrfs and xfs is not certain.",
        ),
        (
            {"ext4": mib(9, 9, 9), "btrfs": mib(3, 4, 5), "xfs": mib(5, 5, 5)},
            (
                "Lowest median: btrfs, 4.00 MiB, 56 % less than ext4; "
                "a difference from xfs is not certain."
            ),
        ),
        (
            {"ext4": mib(5), "xfs": mib(2)},
            "One repetition, so no difference can be reported. Lowest: xfs, 2.00 MiB.",
        ),
        (
            {"ext4": mib(2), "xfs": mib(2), "btrfs": mib(3)},
            "One repetition, so no difference can be reported. Lowest: ext4 and xfs, 2.00 MiB.",
        ),
    ],
)
def test_the_headline_says_who_wrote_least_and_by_how_much(
    values: dict[str, list[float]], expected: str
) -> None:
    assert view(a_run(values)).headline == expected


def column(shown: Any, name: str) -> dict[str, str]:
    place = list(shown.header).index(name)
    return {row[0]: row[place] for row in shown.rows}


def test_rows_are_sorted_and_a_difference_has_one_number() -> None:
    values = {"ext4": mib(5, 5), "f2fs": mib(5.05, 5.05), "xfs": mib(2, 2), "btrfs": mib(44, 44)}
    shown = view(a_run(values)).summary
    assert [row[0] for row in shown.rows] == ["xfs", "ext4", "f2fs", "btrfs"]
    assert column(shown, "vs ext4") == {
        "xfs": "−60 %",
        "ext4": "baseline",
        "f2fs": "≈ +1.0 %",
        "btrfs": "8.80×",
    }


def test_one_repetition_is_in_brackets() -> None:
    shown = view(a_run({"ext4": mib(5), "xfs": mib(2)}))
    assert column(shown.summary, "vs ext4") == {"xfs": "(−60 %)", "ext4": "baseline"}
    assert any("a single repetition has no interval" in line for line in shown.legend)
    assert shown.legend[0] == "1 repetition."


def test_a_time_that_may_be_chance_is_marked_and_its_noise_is_told() -> None:
    times = {"ext4": [1.0, 2.0, 1.5], "xfs": [1.6, 1.1, 1.9]}
    shown = view(a_run({"ext4": mib(5, 5, 5), "xfs": mib(2, 2, 2)}, wall_s=times))
    assert column(shown.summary, "time") == {"xfs": "≈ 1.60 s", "ext4": "1.50 s"}
    [caution] = shown.cautions
    assert caution == (
        "The times of one profile differ by up to 67 %, so no time difference between profiles is"
        " reported."
    )
    called = view(
        a_run({"ext4": mib(5, 5), "xfs": mib(2, 2)}, wall_s={"ext4": [1, 1], "xfs": [3, 3]})
    )
    assert column(called.summary, "time") == {"xfs": "3.00 s", "ext4": "1.00 s"}
    assert called.cautions == []


def test_a_column_that_is_all_zero_is_left_out() -> None:
    values = {"ext4": mib(5, 5), "xfs": mib(2, 2)}
    with_flushes = view(a_run(values, device_flushes={"ext4": [0, 0], "xfs": [7, 7]}))
    without = view(a_run(values, device_flushes={"ext4": [0, 0], "xfs": [0, 0]}))
    assert "flushes" in with_flushes.summary.header
    assert "flushes" not in without.summary.header


def test_wide_has_intervals_and_the_verdicts_words_but_no_hopeless_ratio() -> None:
    values = {"ext4": mib(5, 5, 5), "xfs": mib(2, 2, 2.1), "btrfs": mib(1, 40, 9)}
    shown = view(a_run(values), Choice(is_wide=True)).summary
    assert column(shown, "verdict") == {
        "xfs": "lower",
        "ext4": "–",
        "btrfs": "no difference shown",
    }
    assert column(shown, "95 % interval")["btrfs"] == "~"
    assert column(shown, "ratio")["btrfs"] == "~"
    assert column(shown, "95 % interval")["xfs"].startswith("0.3")


def test_metric_and_baseline_can_be_chosen_afterwards() -> None:
    times = {"ext4": [1.0, 1.0], "xfs": [3.0, 3.0], "btrfs": [2.0, 2.0]}
    run = a_run({"ext4": mib(5, 5), "xfs": mib(2, 2), "btrfs": mib(4, 4)}, wall_s=times)
    shown = view(run, Choice(metric="wall_s", baseline="xfs"))
    assert [row[0] for row in shown.summary.rows] == ["ext4", "btrfs", "xfs"]
    assert column(shown.summary, "vs xfs") == {"ext4": "−67 %", "btrfs": "−33 %", "xfs": "baseline"}
    assert shown.headline == "Lowest time: ext4, 1.00 s, 67 % less than xfs."
    with pytest.raises(InputError, match="did you mean wall_s"):
        view(run, Choice(metric="wall"))
    with pytest.raises(InputError, match="--baseline 'f2fs' is unknown to this run"):
        view(run, Choice(baseline="f2fs"))


def journal(values: dict[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    rest = {name: [0.0] * len(each) for name, each in values.items()}
    others = ("file_data", "metadata", "unknown", "atime", "journal_atime", "doubtful_owner")
    return {"journal_write_bytes": values, **{f"{name}_write_bytes": rest for name in others}}


def test_a_spread_that_the_journal_makes_is_told() -> None:
    values = {"ext4": mib(5, 5.5, 5), "xfs": mib(2, 2, 2)}
    of_journal = {"ext4": mib(1, 1.5, 1), "xfs": mib(1, 1, 1)}
    shown = view(a_run(values, **journal(of_journal)))
    assert [line for line in shown.cautions if "journal" in line] == [
        (
            "Repetitions differ mostly in the journal (ext4 by 512 KiB): "
            "when commits happen depends on timing. A longer workload averages it out."
        ),
    ]
    steady = {"ext4": mib(1, 1, 1), "xfs": mib(1, 1, 1)}
    assert not [
        line for line in view(a_run(values, **journal(steady))).cautions if "journal" in line
    ]


def test_lazytime_is_told_with_what_the_unmount_wrote() -> None:
    values = {"ext4": mib(5, 5), "ext4 -o lazytime": mib(5, 5)}
    late = {"ext4": [0.0, 0.0], "ext4 -o lazytime": mib(1, 1)}
    run = a_run(values, unmount_write_bytes=late)
    profiles = [dict(each) for each in run.manifest.profiles]
    profiles[1]["mount_options"] = "lazytime"
    run = RunResults(run.folder, replace(run.manifest, profiles=profiles), run.samples)
    [line] = view(run).cautions
    assert line.startswith("ext4 -o lazytime: the syncs after each phase and the unmount wrote")
    assert "(1.00 MiB at unmount)" in line
    assert line.endswith("so it cannot show that.")


@pytest.mark.parametrize(("count", "title"), [(1, "Why"), (2, "Why (shares overlap)")])
def test_the_heading_tells_that_several_shares_of_a_profile_overlap(count: int, title: str) -> None:
    run = a_run({"ext4": mib(5), "xfs": mib(2)})
    why = [{"words": f"{share} % of its bytes", "remedy": ""} for share in (100, 50)]
    cells = [
        CellRecord(f"{name}.0", name, 0, 0, 0, "done", 1.0, *[""] * 4, facts={"why": why[:count]})
        for name in ("ext4", "xfs")
    ]
    shown = view(RunResults(run.folder, replace(run.manifest, cells=cells), run.samples))
    assert (shown.why_title, len(shown.why)) == (title, 2 * count)
    assert f"\n{title}\n- xfs: 100 % of its bytes\n" in terminal.text(shown, "folder", 100)
    assert f"\n{title}:\n\n- xfs: 100 % of its bytes\n" in markdown.text(shown, "folder")


@pytest.mark.parametrize(("written", "lines"), [(5.0, 1), (5.05, 1), (6.0, 2)])
def test_a_profile_like_the_baseline_repeats_no_reason(written: float, lines: int) -> None:
    run = a_run({"ext4": mib(5), "ext4 -o lazytime": mib(written)})
    why = [{"words": "all its bytes", "remedy": "-O fast_commit"}]
    cells = [
        CellRecord(f"{name}.0", name, 0, 0, 0, "done", 1.0, *[""] * 4, facts={"why": why})
        for name in ("ext4", "ext4 -o lazytime")
    ]
    shown = view(RunResults(run.folder, replace(run.manifest, cells=cells), run.samples))
    assert shown.why[0] == "ext4: all its bytes → -O fast_commit"
    assert len(shown.why) == lines


def timed_run(programs: dict[str, list[float]], **request: Any) -> RunResults:
    """Return a run of a command whose programs write `programs` MiB, half of what the device
    writes under ext4, and a third under xfs."""
    run = a_run(
        {"ext4": mib(*(2 * each for each in programs["ext4"])), "xfs": mib(*programs["xfs"])},
        program_write_bytes={name: mib(*each) for name, each in programs.items()},
        write_amplification={"ext4": [2.0] * 3, "xfs": [1.0] * 3},
    )
    run.manifest.request.update({"command": ["fio"], **request})
    return run


TIMED = {"ext4": [5.0, 5.1, 5.2], "xfs": [20.0, 20.4, 20.8]}
"""Bytes of a command that runs for a fixed time, during which xfs lets it do four times as much."""


@pytest.mark.parametrize("request_", [{}, {"command": [], "step": ["run=fio"]}])
def test_unequal_work_is_compared_per_byte_of_the_programs(request_: dict[str, Any]) -> None:
    shown = view(timed_run(TIMED, **request_))
    assert shown.headline == "Lowest amplification: xfs, 1.00, 50 % less than ext4."
    assert shown.summary.header[:4] == ("profile", "amplification", "vs ext4", "written")
    assert "5.10 MiB under ext4 to 20.4 MiB under xfs" in shown.cautions[0]
    assert answer(timed_run(TIMED, **request_)) == shown.headline


@pytest.mark.parametrize(
    ("request_", "choice"),
    [({"per": "400:tx"}, Choice()), ({}, Choice(metric=WRITTEN)), ({"command": []}, Choice())],
)
def test_bytes_are_compared_if_the_operations_are_known_or_bytes_asked_for(
    request_: dict[str, Any], choice: Choice
) -> None:
    shown = view(timed_run(TIMED, **request_), choice)
    assert shown.summary.header[1] == "written"
    assert "different amounts" in shown.cautions[0]


@pytest.mark.parametrize("xfs", [5.1, 5.2])
def test_programs_that_wrote_about_the_same_did_the_same_work(xfs: float) -> None:
    shown = view(timed_run({"ext4": [5.1] * 3, "xfs": [xfs] * 3}))
    assert shown.summary.header[1] == "written"
    assert not shown.cautions


def test_an_option_that_the_kernel_does_not_report_is_named() -> None:
    run = a_run({"ext4": mib(5), "ext4 -o orlov,noatime": mib(5)})
    mount = {"type": "ext4", "options": "rw,noatime", "super_options": "rw"}
    cells = [
        CellRecord(f"{name}.0", name, 0, 0, 0, "done", 1.0, *[""] * 4, facts={"mount": mount})
        for name in run.manifest.profile_names
    ]
    run.manifest.profiles[1]["mount_options"] = "orlov,noatime"
    shown = view(RunResults(run.folder, replace(run.manifest, cells=cells), run.samples))
    assert [caution.partition(",")[0] for caution in shown.cautions] == ["ext4 -o orlov"]
    assert "the kernel accepted orlov, but does not report it" in shown.cautions[0]


@pytest.mark.parametrize(("xfs", "is_shown"), [(100.9, False), (101.1, True)])
def test_space_is_shown_if_it_differs_by_more_than_1_percent(xfs: float, is_shown: bool) -> None:
    run = a_run(
        {"ext4": mib(5), "xfs": mib(5)}, space_taken_bytes={"ext4": mib(100), "xfs": mib(xfs)}
    )
    shown = view(run)
    assert ("space taken" in shown.summary.header) == is_shown
    assert any("available to users" in line for line in shown.legend) == is_shown
    assert "space taken" in view(run, Choice(is_wide=True)).summary.header


@pytest.mark.parametrize(
    ("of_xfs", "told"),
    [
        (mib(9.0), " But ext4 wears the --ssd device least: 5.00 MiB of NAND, 9.00 MiB under xfs."),
        (mib(4.0), ""),
        (mib(5.05), ""),
    ],
)
def test_the_headline_says_if_fewer_bytes_wear_more(of_xfs: list[float], told: str) -> None:
    run = a_run(
        {"ext4": mib(2.0), "xfs": mib(1.0)},
        nand_write_bytes={"ext4": mib(5.0), "xfs": of_xfs},
    )
    first = "One repetition, so no difference can be reported. Lowest: xfs, 1.00 MiB."
    assert view(run).headline == answer(run) == first + told


@pytest.mark.parametrize(
    ("of_xfs", "told"),
    [
        (70.0, " Under xfs, the --ssd device also lasts longest: 1.4 times as long as under ext4."),
        (25.0, " But under ext4, the --ssd device lasts longest: 2 times as long as under xfs."),
        (50.5, ""),
        (0.0, ""),
    ],
)
def test_the_headline_is_about_life_if_a_device_is_named(of_xfs: float, told: str) -> None:
    lives = {"ext4": [50.0], "xfs": [of_xfs]}
    run = a_run({"ext4": mib(2.0), "xfs": mib(1.0)}, lifetime_runs=lives)
    first = "One repetition, so no difference can be reported. Lowest: xfs, 1.00 MiB."
    assert view(run).headline == answer(run) == first + told


def test_of_profiles_that_tie_for_the_least_the_one_with_the_longest_life_counts() -> None:
    """The life under ext4 is between theirs, and not certainly another than under xfs."""
    values = {"ext4": mib(2, 2), "btrfs": mib(1, 1), "xfs": mib(1.01, 1.01)}
    lives = {"ext4": [40.0, 60.0], "btrfs": [20.0, 20.0], "xfs": [60.0, 55.0]}
    told = " Of these, the --ssd device lasts longer under xfs: 2.9 times as long as under btrfs."
    assert view(a_run(values, lifetime_runs=lives)).headline.endswith(told)


@pytest.mark.parametrize(
    ("late", "told"),
    [
        # 26 % more in the median, and by chance.
        ([44.0, 82.0], ""),
        (
            [62.0, 63.0],
            " But under late, the --ssd device lasts longest: 1.2 times as long as under xfs.",
        ),
        (
            [53.0, 53.0],
            " But under late, the --ssd device lasts longest: 6.0 % longer than under xfs.",
        ),
    ],
)
def test_a_life_that_is_longer_by_chance_is_not_named(late: list[float], told: str) -> None:
    lives = {"ext4": [50.0, 50.0], "xfs": [50.0, 50.0], "late": late}
    run = a_run(
        {"ext4": mib(2.0, 2.0), "xfs": mib(1.0, 1.0), "late": mib(2.0, 2.0)}, lifetime_runs=lives
    )
    assert view(run).headline == f"xfs wrote the least: 1.00 MiB, 50 % less than ext4.{told}"


@pytest.mark.parametrize(
    ("of_xfs", "order"), [(70.0, ["xfs", "ext4"]), (25.0, ["ext4", "xfs"]), (50.0, ["xfs", "ext4"])]
)
def test_the_table_is_in_order_of_life_if_a_device_is_named(
    of_xfs: float, order: list[str]
) -> None:
    """Rows were in order of bytes, although the answer was about life."""
    totals = {"ext4": mib(2.0), "xfs": mib(1.0)}
    lives, nand = {"ext4": [50.0], "xfs": [of_xfs]}, {"ext4": mib(2.0), "xfs": mib(2.0)}
    found = view(a_run(totals, lifetime_runs=lives, nand_write_bytes=nand))
    assert [row[0] for row in found.summary.rows] == order
    assert ("In order of life, the longest first." in found.legend) == (order == ["ext4", "xfs"])
    by_bytes = view(
        a_run(totals, lifetime_runs=lives, nand_write_bytes=nand), Choice(metric=WRITTEN)
    )
    assert [row[0] for row in by_bytes.summary.rows] == ["xfs", "ext4"]
    one = a_run(totals, lifetime_runs={"ext4": [50.0]}, nand_write_bytes=nand)
    assert [row[0] for row in view(one).summary.rows] == ["xfs", "ext4"]
