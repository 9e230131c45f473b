"""benches/history.py: each run of a benchmark appends one line."""

import json
import re
from pathlib import Path

from tests.modules import ROOT, module_of


def test_each_run_is_a_line_with_revision_and_machine(tmp_path: Path) -> None:
    history = module_of("benches/history.py")
    file = tmp_path / "results" / "history.jsonl"
    for speed in (1.5, 2.5):
        history.append("raid", {"speed": speed}, file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["figures"]["speed"] for line in lines] == [1.5, 2.5]
    assert [line["bench"] for line in lines] == ["raid", "raid"]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", lines[0]["revision"])
    assert lines[0]["machine"]["kernel"]


def test_every_benchmark_keeps_its_figures() -> None:
    without = [
        file.name
        for file in (ROOT / "benches").glob("*.py")
        if file.name not in ("history.py", "mqsim.py")
        and not re.search(rf'^ +history\.append\(\s*"{file.stem}",', file.read_text(), re.MULTILINE)
    ]
    assert without == []
