"""Sweeps: choices in braces, designs, limits on their number, and combinations that are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost import load as load_run
from fscost.crash import states
from fscost.results import load

Run = Callable[..., Any]
FOUR = "ext4 -b {1024,4096} -O {,^has_journal} -o commit={5,30},{relatime,noatime}"


def test_a_sweep_is_counted_before_it_starts(compare: Run, tmp_path: Path) -> None:
    found = compare("--on", FOUR, "--on", "xfs", "-r", "2", "-o", "out")
    first, second = found.stderr.splitlines()[:2]
    assert first == f"true on 16 combinations of {FOUR} (2 × 2 × 2 × 2), xfs"
    assert second.startswith("34 cells, seed 0; expected time ")
    profiles = load(tmp_path / "out").manifest.profiles
    assert profiles[1]["name"] == "ext4 -b 1024 -o commit=5,noatime"
    assert profiles[1]["sweep"] == FOUR
    assert profiles[1]["levels"] == [
        ["-b", "-b 1024"],
        ["^has_journal", "without ^has_journal"],
        ["commit", "commit=5"],
        ["relatime|noatime", "noatime"],
    ]
    assert profiles[16]["levels"] == []


def test_more_cells_than_allowed_are_refused_before_anything_is_made(
    compare: Run, tmp_path: Path
) -> None:
    options = ("--on", FOUR, "--max-cells", "100", "-o", "out")
    said = compare(*options, check=(2,)).stderr
    assert "160 cells, more than --max-cells 100: 16 in each repetition" in said
    assert not (tmp_path / "out").exists()
    lists = ("-L", "a", "1,2", "-r", "5")
    said = compare(*options, *lists, command=("echo", "{a}"), check=(2,)).stderr
    assert "160 cells" in said
    compare(*options, "--design", "screening", "-r", "2")
    assert len(load(tmp_path / "out").manifest.cells) == 16


def test_a_choice_of_a_workload_makes_runs(fscost: Run, tmp_path: Path) -> None:
    options = ("--lab", "fake", "-r", "1", "--on", "ext4", "--workload", "sqlite")
    setting = ("--set", "journal={wal,delete}")
    said = fscost("compare", *options, *setting, "--set", "transactions=5", "-o", "out").stderr
    assert "2 runs, at most 2 cells" in said
    for mode in ("wal", "delete"):
        chosen = load(tmp_path / f"out/journal-{mode}").manifest.workload["options"]
        assert ["journal", mode] in chosen
    wrong = ("--set", "journal={wal,both}", "-o", "wrong")
    assert "both" in fscost("compare", *options, *wrong, check=(2,)).stderr
    assert not (tmp_path / "wrong").exists(), "all runs are validated before the first"
    again = ("--max-cells", "1", "-o", "again")
    assert "--max-cells" in fscost("compare", *options, *setting, *again, check=(2,)).stderr


def test_runs_whose_names_look_alike_have_folders_of_their_own(
    fscost: Run, compare: Run, tmp_path: Path
) -> None:
    """Long names are cut, and signs are no part of a folder's name."""
    command = ("echo", "{n}", "{journal_mode_of_sqlite}", "{synchronous}")
    lists = ("-L", "journal_mode_of_sqlite", "delete,wal", "-L", "synchronous", "normal,full")
    options = ("--on", "ext4", "-r", "1", "-P", "n", "-1..1:2", *lists)
    compare(*options, "-o", "out", command=command)
    ran = [load(folder).manifest.request["command"] for folder in (tmp_path / "out").iterdir()]
    assert len({tuple(words) for words in ran}) == 8
    said = compare(*options, "--resume", "out", command=command).stderr
    assert said.count("finished already") == 8


@pytest.mark.parametrize(
    ("lab", "kind"), [("fake:fail_mkfs=", "mkfs"), ("fake:fail_mount=", "mount")]
)
def test_a_refused_combination_is_skipped_in_the_tools_words(
    compare: Run, tmp_path: Path, lab: str, kind: str
) -> None:
    refused = ["ext4 -b 1024 -o data=journal", "ext4 -b 1024"]
    lab = ",".join([f"{lab}{refused[0]}", f"{lab.removeprefix('fake:')}{refused[1]}"])
    found = compare(
        "--on", "ext4 -b {1024,4096} -o {,data=journal}", "-r", "2", "-o", "out", lab=lab
    )
    words = "mkfs refused: invalid option" if kind == "mkfs" else "ext4: Bad value for 'data'"
    because = f"because {kind} refuses it: {words}"
    assert found.stdout.replace("\n  ", " ").count(because) == 1
    assert found.stderr.count(because) == 1
    manifest = load(tmp_path / "out").manifest
    assert sorted(entry.profile for entry in manifest.skipped) == sorted(refused)
    assert {entry.because for entry in manifest.skipped} == {because.removeprefix("because ")}
    assert [cell.status for cell in manifest.cells] == ["done"] * 4
    assert not [each for each in (tmp_path / "out/cells").iterdir() if "1024" in each.name]


def test_a_profile_that_was_named_alone_fails_as_before(compare: Run, tmp_path: Path) -> None:
    compare(
        "--on", "ext4", "--on", "xfs", "-r", "1", "-o", "out", lab="fake:fail_mkfs=xfs", check=(1,)
    )
    assert [cell.profile for cell in load(tmp_path / "out").manifest.failed] == ["xfs"]


def test_the_options_that_matter_are_named_after_a_sweep(
    fscost: Run, compare: Run, tmp_path: Path
) -> None:
    """In the fake lab, only the journal costs bytes: a fifth, and all flushes."""
    said = compare("--on", FOUR, "-r", "3", "-o", "out", columns=120).stdout
    words = "What matters for bytes written: ^has_journal −20 % ± 0.2; the rest within ± 0.7 %"
    assert words in said
    table = said[said.index(words) :].splitlines()
    assert table[1].split("  ")[0] == "option"
    row = " ".join(table[2].split())
    assert row.startswith("^has_journal −20 % −20 % to −20 % without ^has_journal")
    assert {line.split("  ")[0] for line in table[3:6]} == {"-b 4096", "commit=30", "noatime"}
    flushes = fscost("show", "out", "--metric", "device_flushes", columns=120).stdout
    assert "What matters for flushes: ^has_journal −4 ± 0; the rest within ± 0" in flushes
    document = tmp_path / "sweep.md"
    compare("--on", FOUR, "-r", "2", "--markdown", str(document))
    assert "What matters for bytes written: \\^has\\_journal −20 %" in document.read_text()


def test_effects_for_programs(compare: Run, tmp_path: Path) -> None:
    compare("--on", FOUR, "-r", "2", "-o", "out")
    found = load_run(tmp_path / "out").effects()
    first = found.to_pylist()[0]
    assert (first["levels"], first["against"]) == (["^has_journal"], ["without ^has_journal"])
    assert first["effect"] == pytest.approx(0.8, rel=0.01)
    assert first["low"] < first["effect"] < first["high"]
    assert found.num_rows == 4 + 6
    assert "effects" in load_run(tmp_path / "out").figures
    assert load_run(tmp_path / "out").effects("device_flushes")["unit"][0].as_py() == "count"


def test_one_factor_and_one_repetition_make_no_claim(compare: Run) -> None:
    assert "What matters" not in compare("--on", "ext4 -o commit={5,30}", "-r", "2").stdout
    two = ("--on", "ext4 -O {,^has_journal} -o {relatime,noatime}")
    said = " ".join(compare(*two, "-r", "1").stdout.split())
    assert "nothing is known, because one repetition has no interval (-r 2 has)" in said


def test_the_profiles_that_nothing_improves_on(fscost: Run, compare: Run, tmp_path: Path) -> None:
    """Without a journal, the fake lab writes less and takes longer."""
    compare("--on", FOUR, "-r", "3", "-o", "out")
    options = ("show", "out", "--pareto", "wall_s")
    said = " ".join(fscost(*options).stdout.split())
    best = json.loads(fscost(*options, "--json").stdout)["pareto"]
    assert f"Best in written and time: {len(best)} of 16 profiles. For each of the others" in said
    assert any("^has_journal" in name for name in best)
    assert any("^has_journal" not in name for name in best)
    assert len(best) < 16
    wrong = fscost("show", "out", "--pareto", "wall", check=(2,)).stderr
    assert "--pareto 'wall' is unknown to this run" in wrong
    assert "did you mean wall_s?" in wrong


def test_safety_is_the_verdict_after_power_cuts(fscost: Run, compare: Run, tmp_path: Path) -> None:
    compare("--on", "ext4", "--on", "xfs", "--on", "btrfs", "-r", "2", "-o", "out")
    said = fscost("show", "out", "--pareto", "safety", check=(2,)).stderr
    assert "no verdicts after power cuts" in said
    (tmp_path / "out/crash").mkdir()
    verdicts = {"ext4": "SAFE", "xfs": "LOSES-ACKED", "btrfs": "SAFE"}
    states.save(tmp_path / "out/crash", states.Findings("files", "reorder-4k", verdicts))
    shown = json.loads(fscost("show", "out", "--pareto", "safety", "--json").stdout)
    assert shown["pareto"] == ["xfs", "ext4"], (
        "xfs writes the least; btrfs the most, as safe as ext4"
    )


def test_kernels_are_a_factor_of_a_sweep(compare: Run, tmp_path: Path) -> None:
    kernels = ("--kernel", "6.1", "--kernel", "6.12")
    found = compare("--on", "ext4 -O {,^has_journal}", *kernels, "-r", "2", "-o", "out")
    assert "on 4 combinations of ext4 -O {,^has_journal} (2 × 2)" in found.stderr
    assert "What matters for bytes written: ^has_journal −20 %" in found.stdout
    effects = load_run(tmp_path / "out").effects().to_pylist()
    assert ["kernel"] in [each["factors"] for each in effects]
