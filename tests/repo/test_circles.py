"""No Rust module imports itself through others. import-linter holds this between the rooms of
Python; rustc allows circles within a crate.

A file is a module. A name that a module re-exports counts as a use of the module that defines it. A
module may use its ancestors: a parent declares its children, and children name their parent's
types.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Module = tuple[str, ...]
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
INLINE = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*\Z", re.DOTALL)
COMMENTS = re.compile(r"^\s*//.*$", re.MULTILINE)


def expanded(tree: str, prefix: Module = ()) -> Iterator[Module]:
    """Yield the paths of a use tree such as `a::{b, c::{d, e as f}}`."""
    depth, item = 0, ""
    for letter in tree + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            item += letter
            continue
        head, brace, rest = item.strip().partition("{")
        path = (*prefix, *re.sub(r"\s+as\s+\w+", "", head).strip().strip(":").split("::"))
        if brace:
            yield from expanded(rest.rstrip().removesuffix("}"), tuple(filter(None, path)))
        elif head:
            yield path
        item = ""


class Crate:
    """The modules of a crate, by path, and the names that they re-export."""

    def __init__(self, sources: dict[Module, str]) -> None:
        self.sources = {
            module: COMMENTS.sub("", TESTS.sub("", text)) for module, text in sources.items()
        }
        self.uses: dict[Module, set[Module]] = {}
        self.exported: dict[tuple[Module, str], Module] = {}
        for module, text in self.sources.items():
            paths = set[Module]()
            for public, tree in USE.findall(text):
                for path in filter(None, (self.absolute(module, p) for p in expanded(tree))):
                    paths.add(path)
                    if public:
                        self.exported[module, path[-1]] = path
            inline = (tuple(found.split("::")) for found in INLINE.findall(USE.sub("", text)))
            paths |= {path for path in (self.absolute(module, p) for p in inline) if path}
            self.uses[module] = paths

    def absolute(self, module: Module, path: Module) -> Module | None:
        """Return a path from the crate's root; None for a path into another crate."""
        if path[0] == "super":
            return self.absolute(module[:-1], path[1:]) if path[1:] else module[:-1]
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self" or (*module, path[0]) in self.sources:
            return (*module, *path[path[0] == "self" :])
        return (*module, *path) if path[0] in ("super", "self") else None

    def defining(self, path: Module) -> Module:
        """Return the module that defines the item at a path."""
        known = max((m for m in self.sources if path[: len(m)] == m), key=len)
        rest = path[len(known) :]
        origin = self.exported.get((known, rest[0])) if rest else None
        return self.defining((*origin, *rest[1:])) if origin not in (None, path) else known

    def circle(self) -> list[Module] | None:
        """Return a circle of modules, if there is one."""
        graph = {
            module: {
                used
                for used in map(self.defining, paths)
                if used != module[: len(used)]  # neither itself nor an ancestor
            }
            for module, paths in self.uses.items()
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found: list[Module] = error.args[1]
            return found
        return None


def read(source: Path) -> Crate:
    """Read a crate without its tests and programs."""
    modules = {}
    for file in source.rglob("*.rs"):
        path = file.relative_to(source).with_suffix("").parts
        if path[-1] in ("mod", "lib"):
            path = path[:-1]
        if not {"tests", "main"} & set(path):
            modules[path] = file.read_text()
    return Crate({(): "", **modules})


@pytest.mark.parametrize("source", sorted(ROOT.glob("crates/*/src")), ids=lambda p: p.parent.name)
def test_modules_form_no_circle(source: Path) -> None:
    assert read(source).circle() is None


@pytest.mark.parametrize(
    "second",
    [
        "use crate::a::A;",
        "use super::a;",
        "use crate::{c, a::{A, B}};",
        "use crate::A;",
        "fn f() { crate::a::g() }",
        "// Comment.\npub(crate) use super::a::A as Z;",
    ],
)
def test_a_circle_is_found(second: str) -> None:
    sources = {(): "mod a; mod b; pub use a::A;", ("a",): "use crate::b::B;", ("b",): second}
    assert set(Crate(sources).circle() or ()) == {("a",), ("b",)}


@pytest.mark.parametrize(
    "second",
    [
        "use crate::Other;",
        "use std::a;",
        "// use crate::a;",
        "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
    ],
)
def test_uses_of_the_root_of_other_crates_and_of_tests_make_no_circle(second: str) -> None:
    sources = {(): "mod a; mod b; pub struct Other;", ("a",): "use crate::b::B;", ("b",): second}
    assert Crate(sources).circle() is None
