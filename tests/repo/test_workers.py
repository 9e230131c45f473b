"""Scheduling of the workers of `make test`: tests/workers.py."""

import os
from pathlib import Path

import pytest
from tests import workers
from tests.conftest import why_no_root_tests
from tests.repo.test_repository import ROOT


def test_what_is_singly_together_or_first_exists() -> None:
    for prefix in (*workers.SINGLY, *workers.TOGETHER, *workers.LONGEST_FIRST):
        file, _, test = prefix.partition("::")
        assert (ROOT / file).exists() or list(ROOT.glob(f"{file}*.py")), prefix
        assert not test or f"\ndef {test}" in (ROOT / file).read_text(), prefix


def test_tests_with_a_costly_fixture_are_one_unit() -> None:
    units = {workers.unit(f"tests/{name}") for name in ("report/test_a.py::x", "report/b.py::y[1]")}
    assert units == {"tests/report/"}
    assert workers.unit("tests/stats/test_ratio.py::x[1]") == "tests/stats/test_ratio.py"
    assert workers.unit("tests/analysis/ext/test_ext.py::x[1]") == (
        "tests/analysis/ext/test_ext.py::x[1]"
    )


@pytest.mark.skipif(
    "PYTEST_XDIST_WORKER" not in os.environ or why_no_root_tests() is not None,
    reason="needs root and the workers of `make test`",
)
def test_a_worker_has_its_own_lock() -> None:
    assert Path("/run").stat().st_dev != Path(f"/proc/{os.getppid()}/root/run").stat().st_dev
