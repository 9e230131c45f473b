"""docs/atlas.md: made from the runs that the repository keeps."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def atlas() -> ModuleType:
    spec = importlib.util.spec_from_file_location("atlas", ROOT / "tools/atlas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_and_its_data_are_what_the_kept_runs_give() -> None:
    for file, text in atlas().page().items():
        assert file.read_text() == text, f"{file.name}: `python tools/atlas.py page` makes it"
