"""`fscost diff` with conditions: which changes fail a pull request, and which are undecided."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest

from fscost.cli.app import command
from fscost.errors import InputError
from fscost.results import CellRecord, RunStore, SampleRow, load, with_totals
from fscost.results.metrics import METRICS
from fscost.stats import Verdict
from fscost.view.changes import OTHER_DEVICES, Condition, compared, grid, headline, reasons
from fscost.view.runs import listed

from .conftest import manifest

WRITTEN = "device_write_bytes"
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Create a run from profile → metric → value of each repetition."""

    def run(
        name: str,
        values: Mapping[str, Mapping[str, list[float]]],
        lab: str = "fake",
        **fields: Any,
    ) -> Path:
        made = replace(manifest([*values]), lab=lab, **fields)
        store = RunStore.create(tmp_path / name, made)
        for profile, metrics in values.items():
            for repetition in range(len(metrics[WRITTEN])):
                cell = f"{profile}.{repetition}"
                about = (cell, profile, repetition, 1, repetition, "work", True, "")
                rows = [
                    SampleRow(*about, metric, METRICS[metric].unit, found[repetition])
                    for metric, found in metrics.items()
                ]
                record = CellRecord(
                    cell, profile, repetition, 1, repetition, "done", 1.0, *[""] * 4, {}
                )
                store.add(record, with_totals(rows))
        return store.folder

    return run


def status(*arguments: object) -> int:
    code = command("diff").main([str(each) for each in arguments], standalone_mode=False)
    return int(code or 0)


BEFORE = {
    "ext4": {WRITTEN: [1000.0, 1010.0, 990.0], "directory_entries_write_bytes": [100.0] * 3},
    "xfs": {WRITTEN: [500.0] * 3, "directory_entries_write_bytes": [50.0] * 3},
}
AFTER = {
    "ext4": {WRITTEN: [900.0, 909.0, 891.0], "directory_entries_write_bytes": [0.0] * 3},
    "xfs": {WRITTEN: [550.0] * 3, "directory_entries_write_bytes": [100.0] * 3},
}


def test_regressions_come_first_with_their_causes(make: Make) -> None:
    found = compared(load(make("a", BEFORE)), load(make("b", AFTER)))
    assert [(each.profile, each.verdict) for each in found.changes] == [
        ("xfs", Verdict.HIGHER),
        ("ext4", Verdict.LOWER),
    ]
    assert found.changes[0].ratio == pytest.approx(1.1)
    assert found.changes[0].causes == {"directory_entries": 50.0}
    assert headline(found) == "1 regression: xfs, written +10 %."
    back = compared(load(make("b2", AFTER)), load(make("a2", BEFORE)))
    assert headline(back).startswith("1 regression: ext4, written +11 %")
    assert reasons(found)[0] == "xfs: directory entries +50 B"
    assert grid(found).rows[0][-1] == "regression"


def test_the_metrics_of_a_single_profile_are_all_named(make: Make) -> None:
    """`diff` shows one metric: without the others' names, their number would be a riddle."""
    before = {"ext4": {WRITTEN: [100.0] * 3, "device_flushes": [8.0] * 3}}
    after = {"ext4": {WRITTEN: [110.0] * 3, "device_flushes": [10.0] * 3}}
    runs = load(make("a", before)), load(make("b", after))
    assert headline(compared(*runs)) == "2 regressions of ext4: flushes +25 %, written +10 %."


def test_the_bytes_are_named_beside_a_larger_change(make: Make) -> None:
    """The answer was about flushes, and the table below it about bytes."""
    names = ("ext4", "xfs")
    before = {name: {WRITTEN: [100.0] * 3, "device_flushes": [8.0] * 3} for name in names}
    after = {name: {WRITTEN: [110.0] * 3, "device_flushes": [10.0] * 3} for name in names}
    runs = load(make("a", before)), load(make("b", after))
    assert headline(compared(*runs)) == (
        "4 regressions; the largest: ext4, flushes +25 %; written: ext4 +10 %, xfs +10 %."
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("device_write_bytes > +5%", 1),
        ("device_write_bytes > +10.5%", 0),
        ("device_write_bytes > 1.05", 1),
        ("device_write_bytes < -5%", 1),
        ("device_write_bytes < -20%", 0),
    ],
)
def test_a_condition_decides_the_exit_status(make: Make, condition: str, expected: int) -> None:
    assert status(make("a", BEFORE), make("b", AFTER), "--fail-if", condition) == expected


def test_noise_is_no_regression(make: Make) -> None:
    noisy = {"ext4": {WRITTEN: [1300.0, 800.0, 1080.0]}}
    before = {"ext4": {WRITTEN: [1000.0, 1010.0, 990.0]}}
    assert status(make("a", before), make("b", noisy), "--fail-if", f"{WRITTEN} > +5%") == 0


def test_one_repetition_decides_nothing(make: Make) -> None:
    runs = [make(name, {"ext4": {WRITTEN: [value]}}) for name, value in (("a", 1.0), ("b", 9.0))]
    with pytest.raises(InputError, match="ext4 has 1 repetition in both runs; at least two are"):
        status(*runs, "--fail-if", f"{WRITTEN} > +5%")


def test_a_cost_that_begins_is_a_regression(make: Make, tmp_path: Path) -> None:
    """Flushes 0, 0, 0, then 1000, 1000, 1000 were "No difference found."."""
    counts = {"a": [0.0] * 3, "b": [1000.0] * 3}
    runs = [
        make(name, {"ext4": {WRITTEN: [9.0] * 3, "device_flushes": found}})
        for name, found in counts.items()
    ]
    found = compared(*map(load, runs))
    assert headline(found) == "1 regression: ext4, flushes from zero to 1,000."
    assert grid(found).rows[0][-1] == "regression"
    file = tmp_path / "tests.xml"
    assert status(*runs, "--junit", file) == 0
    assert parse(file).getroot().attrib["failures"] == "1"
    assert status(*runs, "--fail-if", "device_flushes > +5%") == 1
    assert status(*runs, "--fail-if", "device_flushes < -5%") == 0
    same = make("same", {"ext4": {WRITTEN: [9.0] * 3, "device_flushes": counts["a"]}})
    assert status(runs[0], same, "--fail-if", "device_flushes > +5%") == 0
    single = [
        make(f"1{name}", {"ext4": {WRITTEN: [9.0], "device_flushes": found[:1]}})
        for name, found in counts.items()
    ]
    assert headline(compared(*map(load, single))) == "No difference found."


def test_a_cost_that_ends_is_the_largest_improvement(make: Make) -> None:
    """Flushes 51, then 0, were "+0.0 %", and came last."""
    flushes = {"a": [51.0] * 3, "b": [0.0] * 3}
    runs = [
        make(
            name,
            {
                "ext4": {WRITTEN: [9.0] * 3, "device_flushes": found},
                "xfs": {WRITTEN: [10.0 if name == "a" else 9.0] * 3},
            },
        )
        for name, found in flushes.items()
    ]
    said = headline(compared(*map(load, runs)))
    assert said.startswith("No regression; 2 improvements; the largest: ext4, flushes −100 %; "), (
        said
    )


def test_some_zeros_leave_a_change_undecided(make: Make, tmp_path: Path) -> None:
    """Discards grew by 0.1 %, and `> +5%` was true."""
    discards = {"a": [0.0] + [1e6] * 4, "b": [0.0, 1e6] + [1.001e6] * 3}
    runs = [
        make(name, {"ext4": {WRITTEN: [9.0] * 5, "device_discard_bytes": found}})
        for name, found in discards.items()
    ]
    found = compared(*map(load, runs))
    because = "zero in some repetitions and not in others, so there is no ratio"
    assert headline(found).startswith("No difference found. Undecided: ext4, device discard ")
    assert headline(found).endswith(f"{because}.")
    assert "undecided" in [row[-1] for row in grid(found).rows]
    with pytest.raises(InputError, match=because):
        status(*runs, "--fail-if", "device_discard_bytes > +5%")
    file = tmp_path / "tests.xml"
    assert status(*runs, "--junit", file) == 0
    assert f"undecided: {because}" in file.read_text()
    # The same values are no change, zeros or not.
    same = make("same", {"ext4": {WRITTEN: [9.0] * 5, "device_discard_bytes": discards["a"]}})
    assert status(runs[0], same, "--fail-if", "device_discard_bytes > +5%") == 0


@pytest.mark.parametrize(
    ("request_of", "options", "is_judged"),
    [
        ({"command": ["work"]}, (), False),
        ({"command": ["work"]}, ("--per", "9:file"), True),
        ({"command": ["work"], "per": "9:file"}, (), True),
        ({"workload": "small-files", "command": []}, (), True),
    ],
)
def test_more_bytes_may_be_more_work(
    make: Make, request_of: dict[str, Any], options: tuple[str, ...], is_judged: bool
) -> None:
    """A command that wrote twice as much in its minute was a regression."""
    runs = [
        make(
            name,
            {
                "ext4": {
                    WRITTEN: [1e9 * much] * 3,
                    "program_write_bytes": [0.9e9 * much] * 3,
                    "device_discard_bytes": [0.0] * 3,
                }
            },
            request=request_of,
        )
        for name, much in (("a", 1), ("b", 2))
    ]
    condition = ("--fail-if", f"{WRITTEN} > +5%")
    if is_judged:
        assert status(*runs, *condition, *options) == 1
        return
    because = "the programs wrote 858 MiB, then 1.68 GiB, 1.00× per byte of theirs"
    found = compared(*map(load, runs))
    assert headline(found) == (
        f"No difference found. Undecided: ext4, written 2.00× (954 MiB, then 1.86 GiB): {because}."
    )
    with pytest.raises(InputError, match=because):
        status(*runs, *condition)


def test_a_change_per_byte_and_in_all_is_one(make: Make) -> None:
    """More work does not excuse bytes that grew still more."""
    runs = [
        make(
            name,
            {"ext4": {WRITTEN: [1e9 * many] * 3, "program_write_bytes": [0.5e9 * much] * 3}},
            request={"command": ["work"]},
        )
        for name, many, much in (("a", 1, 1), ("b", 4, 2))
    ]
    assert headline(compared(*map(load, runs))) == "1 regression: ext4, written 4.00×."


def test_runs_that_did_other_things_say_so(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """Another scale, other mkfs flags and another guest were "3 regressions of ext4"."""
    values = {"ext4": {WRITTEN: [9.0] * 3, "lifetime_runs": [9.0] * 3}}
    others = {"ext4": {WRITTEN: [99.0] * 3, "lifetime_runs": [1.0] * 3}}

    def fields(scale: float, flags: list[str], kernel: str, ssd: str) -> dict[str, Any]:
        return {
            "workload": {"name": "small-files", "scale": scale, "options": [["files", 9]]},
            "profiles": [{"name": "ext4", "type": "ext4", "mkfs_flags": flags}],
            "environment": {"kernel": {"release": "6.18"}, "guest": {"kernels": {"": kernel}}},
            "request": {"ssd": ssd},
        }

    runs = [
        make("a", values, **fields(1.0, [], "6.1", "sd-card")),
        make("b", others, **fields(10.0, ["-O", "^has_journal"], "6.12", "nvme")),
    ]
    found = compared(*map(load, runs))
    assert headline(found) == (
        "1 regression: ext4, written 11.0×."
        " The runs did not do the same: they differ in ext4's mkfs flags, scale."
    )
    assert found.notes[:3] == [
        "ext4's mkfs flags: none, then -O ^has_journal",
        "scale: 1.0, then 10.0",
        "guests' kernels: 6.1, then 6.12",
    ]
    assert OTHER_DEVICES in found.notes
    assert status(*runs) == 0
    assert OTHER_DEVICES in " ".join(capsys.readouterr().out.split())
    with pytest.raises(InputError, match="different devices"):
        status(*runs, "--metric", "lifetime_runs")


def test_the_trend_is_of_runs_that_did_the_same(make: Make, tmp_path: Path) -> None:
    """Ten times as many files under one title were "ext4 10.0×"."""
    for name, scale, value, at in (("a", 1, 1e6, 1), ("b", 10, 1e7, 2), ("c", 1, 1e6, 3)):
        workload = {"name": "small-files", "scale": scale}
        started = f"2026-01-0{at}T00:00:00Z"
        make(name, {"ext4": {WRITTEN: [value] * 3}}, workload=workload, started_utc=started)
    trends = {run.name: run.trend for run in listed(tmp_path, trust=False)}
    assert trends["b"] is None
    assert trends["c"] is not None
    assert trends["c"].before == "a"


def test_what_changes_no_work_and_what_is_not_known_end_no_trend(
    make: Make, tmp_path: Path
) -> None:
    """A device of --ssd, a fact that an older version did not store, and a seed in the shell."""
    values = {"ext4": {WRITTEN: [1e6] * 3}}

    def fields(at: int, options: dict[str, Any], scale: dict[str, Any]) -> dict[str, Any]:
        steps = [{"name": "run", "shell": f"iozone -w {at}"}]
        workload = {"name": "iozone", "options": [], "steps": steps, **scale}
        started = f"2026-01-0{at}T00:00:00Z"
        return {"workload": workload, "options": options, "started_utc": started, "seed": at}

    make("a", values, **fields(1, {}, {}))
    make("b", values, **fields(2, {"wear_device": {"name": "sd-card"}}, {"scale": 1}))
    trends = {run.name: run.trend for run in listed(tmp_path, trust=False)}
    assert trends["b"] is not None
    found = compared(*(load(tmp_path / name) for name in ("a", "b")))
    assert list(found.unlike) == ["seed"]


@pytest.mark.parametrize(
    "text", ["wall_s > +5%", "device_write_byte > 5%", "more", "a = 5", f"{WRITTEN} > 5"]
)
def test_what_cannot_be_compared_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Condition.parse(text)


def test_runs_of_different_labs_do_not_compare(make: Make) -> None:
    with pytest.raises(InputError, match="different labs"):
        compared(load(make("a", BEFORE)), load(make("b", BEFORE, lab="vm")))


def test_markdown_is_a_table(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(make("a", BEFORE), make("b", AFTER), "--markdown", "-") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("**1 regression")
    assert "| xfs |" in next(line for line in lines if line.startswith("| xfs"))


def test_test_cases_say_what_failed(make: Make, tmp_path: Path) -> None:
    runs = (make("a", BEFORE), make("b", AFTER))
    file = tmp_path / "tests.xml"

    def cases() -> tuple[dict[str, str], dict[str, str | None]]:
        root = parse(file).getroot()
        failed = {
            case.attrib["classname"]: failure.attrib["message"]
            if (failure := case.find("failure")) is not None
            else None
            for case in root
        }
        return root.attrib, failed

    # Without conditions, a regression fails, but not the command.
    assert status(*runs, "--junit", file) == 0
    about, failed = cases()
    assert (about["tests"], about["failures"]) == ("2", "1")
    assert failed["ext4"] is None
    assert (failed["xfs"] or "").startswith(f"{WRITTEN}: 1.10×")
    assert status(*runs, "--junit", file, "--fail-if", f"{WRITTEN} > +20%") == 0
    assert cases()[1] == {"ext4": None, "xfs": None}
    assert status(*runs, "--junit", file, "--fail-if", f"{WRITTEN} > +5%") == 1
    assert (cases()[1]["xfs"] or "").startswith(f"{WRITTEN} > +5%: 1.10×")
