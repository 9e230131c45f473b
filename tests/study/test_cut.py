"""Claims about power cuts are judged by the outputs of `fscost crash --json` in a run's folder."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fscost import study
from fscost.errors import InputError
from fscost.study import JudgedClaim, Outcome, Report, Verdict, cut

Reported = Callable[..., Report]
NAMES = {short: found.name for short, found in study.load("external-journal").profiles.items()}


def states(short: str, lost: int = 0, corrupt: int = 0) -> dict[str, Any]:
    counts = {"lost": lost, "stale": 0, "corrupt": corrupt, "repaired": 3}
    return {"profile": NAMES[short], "verdict": "", "states": 100, **counts}


def way(short: str, name: str, mounts: int, *, is_read_only: bool = False) -> dict[str, Any]:
    found = {"profile": NAMES[short], "disk": "journal", "how": "gone", "way": name}
    return {**found, "is_read_only": is_read_only, "tried": 5, "mounts": mounts, "words": []}


def document(lost: int = 0, xfs: int = 0, ext: int = 5) -> dict[str, Any]:
    return {
        "schema": "fscost-crash-1",
        "run": "/nowhere",
        "workload": "files",
        "device": "reorder-4k",
        "seed": 1,
        "rows": [states("ext_async", lost), states("ext_sync")],
        "lost": [
            way("xfs_log", "mount", 0),
            way("xfs_log", "mount -o ro,norecovery", 5, is_read_only=True),
            way("xfs_log", "xfs_repair -L -l NEW", xfs),
            way("ext_async", "mount", 0),
            way("ext_async", "tune2fs -J device=NEW", ext),
        ],
    }


def judged(report: Report, folder: Path, *documents: object) -> list[JudgedClaim]:
    for number, each in enumerate(documents):
        (folder / f"crash-{number}.json").write_text(json.dumps(each))
    results = replace(report.results, folder=folder)
    [findings] = study.report(report.study, results).findings
    return list(findings.claims[-2:])


@pytest.mark.parametrize(
    ("documents", "safe", "lost"),
    [
        ([document(), document()], Verdict.REPRODUCED, Verdict.REPRODUCED),
        ([document(lost=7, xfs=5)] * 2, Verdict.PARTLY, Verdict.PARTLY),
        ([document(lost=7), document(lost=12)], Verdict.PARTLY, Verdict.REPRODUCED),
        ([document(ext=4)] * 2, Verdict.REPRODUCED, Verdict.PARTLY),
        ([document()], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        ([], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_kept_states_decide_the_claims_about_power_cuts(
    reported: Reported,
    tmp_path: Path,
    documents: list[object],
    safe: Verdict,
    lost: Verdict,
) -> None:
    found = judged(reported("external-journal", lambda *_: 1.0), tmp_path, *documents)
    assert [claim.verdict for claim in found] == [safe, lost]


def test_a_lost_write_in_one_of_two_examinations_decides_nothing(
    reported: Reported, tmp_path: Path
) -> None:
    report = reported("external-journal", lambda *_: 1.0)
    [safe, _] = judged(report, tmp_path, document(lost=7), document())
    assert [entry.outcome for entry in safe.criteria] == [
        Outcome.OPEN,
        Outcome.HOLDS,
        Outcome.HOLDS,
        Outcome.HOLDS,
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "Expecting value"),
        ("[]", "its content is a list, not an object"),
        (json.dumps({**document(), "schema": "fscost-compare-1"}), "schema"),
        (json.dumps({**document(), "rows": [{"profile": "x"}]}), r"rows\[0\].states is missing"),
        (json.dumps({**document(), "lost": None}), "lost is null, not a list|lost"),
        (json.dumps({**document(), "seed": "1"}), "seed"),
        ("[" * 100_000, "crash-0.json"),
        (" " * (4 << 20) + "{}", "is larger than 4 MiB"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "crash-0.json").write_text(content)
    with pytest.raises(InputError, match=what) as raised:
        cut.kept(tmp_path)
    assert "crash-0.json" in raised.value.what
    assert "remove the file" in str(raised.value.remedy)


def test_one_repetition_tells_nothing(reported: Reported) -> None:
    [findings] = reported("journal-tax", repetitions=1).findings
    found = {claim.verdict for claim in findings.claims}
    assert found == {Verdict.INCONCLUSIVE, Verdict.NOT_TESTABLE}
