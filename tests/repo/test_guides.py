"""The templates of docs/adding: code that a newcomer copies must work."""

import re

from tests.repo.test_repository import ROOT

from fscost.workload import load

GUIDES = ROOT / "docs/adding"


def template(guide: str, language: str) -> str:
    """Return the longest code block of a guide in this language."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)
    return str(max(blocks, key=len))


def test_the_template_of_a_workload_is_one() -> None:
    built_in = load.read_builtin("mine", template("workload.md", "toml"))
    assert [step.name for step in built_in.steps] == ["append", "read"]
    assert built_in.options["appends"].scaled


def test_places_that_guides_name_exist() -> None:
    """Paths named in guides exist, except for placeholders in capitals."""
    named = [
        (guide.name, name)
        for guide in GUIDES.glob("*.md")
        for name in re.findall(
            r"`((?:crates|python|tests|fuzz|benches|docs|tools)/[^`]+)`", guide.read_text()
        )
    ]
    assert len(named) > 30
    assert [
        (guide, name)
        for guide, name in named
        if "NAME" not in name and not list(ROOT.glob(name.rstrip("/")))
    ] == []


def test_the_template_of_a_family_keeps_to_the_contract() -> None:
    """The template has every method that a family must implement; `make test` does not compile
    it."""
    contract = (ROOT / "crates/explain/src/family.rs").read_text().partition("pub trait Family")[2]
    required = set(re.findall(r"^    fn (\w+)\([^{;]*;$", contract, re.MULTILINE))
    code = template("file-system.md", "rust").partition("impl Family for")[2]
    assert {"name", "owns", "write", "finish"} == required
    assert required <= set(re.findall(r"^    fn (\w+)", code, re.MULTILINE))
