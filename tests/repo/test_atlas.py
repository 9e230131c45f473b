"""docs/atlas.md: made from the runs that the repository keeps."""

from tests.modules import module_of


def test_the_page_and_its_data_are_what_the_kept_runs_give() -> None:
    for file, text in module_of("tools/atlas.py").page().items():
        assert file.read_text() == text, f"{file.name}: `python tools/atlas.py page` makes it"
