"""docs/speed.md: made from the figures of benchmarks that the repository keeps."""

import re

from tests.modules import ROOT, module_of


def test_the_page_is_what_the_kept_figures_give() -> None:
    speed = module_of("tools/speed.py")
    assert speed.PAGE.read_text() == speed.page(), "`python tools/speed.py page` makes it"


def test_each_benchmark_has_a_table() -> None:
    appends = re.compile(r'history\.append\("(\w+)"')
    texts = [file.read_text() for file in (ROOT / "benches").glob("*.py")]
    named = {name for text in texts for name in appends.findall(text)}
    assert named == set(module_of("tools/speed.py").benches())
