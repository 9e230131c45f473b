"""`fscost explain` and `fscost compare` give the same counts for one run."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.whole.test_explained import PROGRAM, WHOLE, compare, on

from fscost.results import load, written

pytestmark = pytest.mark.root
PROFILES = ("ext4", "ext4 -O ^has_journal", "ext4-external-journal", "xfs", "btrfs")
PHASES = ("mkfs", "mount", "unpack", "unpack-over", "delete")


def explain(folder: Path, phase: str, by: str) -> dict[str, dict[str, Any]]:
    """Return by profile the command's output for a phase of a run."""
    ended = subprocess.run(
        [*PROGRAM, "explain", str(folder), "--json", "--phase", phase, "--by", by],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    recordings = json.loads(ended.stdout)["recordings"]
    assert all(each["rest"] is None for each in recordings)
    return {each["profile"]: each for each in recordings}


def counted(structures: dict[str, Any], causes: dict[str, Any]) -> Counter[str]:
    """Return all metrics of a phase, computed from its two tables."""
    found: Counter[str] = Counter()
    for whole in (structures, causes):
        parts = sum(group["write_bytes"] for group in whole["groups"])
        assert parts == whole["write_bytes"] == structures["write_bytes"]
    for metric in (WHOLE, written.UNKNOWN, written.DOUBTFUL):
        found[metric] = structures[metric.removeprefix("device_")]
    for group in structures["groups"]:
        name, _, _ = group["name"].partition(" of ")
        metric = written.BY_STRUCTURE[name]
        if metric not in written.KINDS:
            found[metric] += group["write_bytes"]
    for group in causes["groups"]:
        metric = written.BY_CAUSE.get(group["name"], written.MIXED)
        found[metric] += group["write_bytes"]
        for kind, count in group["parts"].items():
            found[KINDS.get(kind, "")] += count
        if metric == written.ATIME:
            found[written.JOURNAL_ATIME] += group["parts"].get("journal", 0)
    return found


KINDS = {
    "data": written.FILE_DATA,
    "journal": written.JOURNAL,
    "metadata": written.METADATA,
}


def differences(
    found: dict[tuple[str, str], Counter[str]], rows: Iterable[dict[str, Any]]
) -> list[str]:
    metrics = {WHOLE, *written.MEANINGS}
    return [
        f"{row['profile']}, {row['phase']}: {row['metric']} is {row['value']:.0f} in compare, "
        f"{found[row['profile'], row['phase']][row['metric']]} in explain"
        for row in rows
        if row["metric"] in metrics
        and row["phase"] in PHASES
        and not row["disk"]
        and row["value"] != found[row["profile"], row["phase"]][row["metric"]]
    ]


def test_explain_counts_every_metric_of_every_phase_as_compare_does(tmp_path: Path) -> None:
    compare(tmp_path / "run", "--workload", "small-files", "--scale", "0.1", *on(*PROFILES))
    samples = load(tmp_path / "run").samples.to_pylist()
    assert {row["profile"] for row in samples} == set(PROFILES)

    found = {}
    for phase in PHASES:
        structures, causes = (explain(tmp_path / "run", phase, by) for by in ("structure", "cause"))
        assert set(structures) == set(causes) == set(PROFILES)
        for name in PROFILES:
            found[name, phase] = counted(structures[name], causes[name])
    assert differences(found, samples) == []

    compared = sum(
        row["metric"] in written.MEANINGS and row["phase"] in PHASES and not row["disk"]
        for row in samples
    )
    assert compared == len(PROFILES) * len(PHASES) * len(written.MEANINGS)
