"""docs/speed.md: made from the figures of benchmarks that the repository keeps."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def speed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("speed", ROOT / "tools/speed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_kept_figures_give() -> None:
    module = speed()
    assert module.PAGE.read_text() == module.page(), "`python tools/speed.py page` makes it"


def test_each_benchmark_has_a_table() -> None:
    appends = re.compile(r'history\.append\("(\w+)"')
    texts = [file.read_text() for file in (ROOT / "benches").glob("*.py")]
    named = {name for text in texts for name in appends.findall(text)}
    assert named == set(speed().benches())
