"""Boundaries that no other tool checks: between the crates, and around the native module. See
ARCHITECTURE.md."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ALLOWED = {
    "fscost-recording": set[str](),
    "fscost-crash": {"fscost-recording"},
    "fscost-device": {"fscost-recording", "fscost-latency"},
    "fscost-agent": {"fscost-trace"},
    "fscost-explain": {"fscost-ondisk", "fscost-recording", "fscost-raid"},
    "fscost-latency": set[str](),
    "fscost-ondisk": set[str](),
    "fscost-replay": {"fscost-latency", "fscost-recording", "fscost-traces"},
    "fscost-trace": set[str](),
    "fscost-bindings": {
        "fscost-crash",
        "fscost-latency",
        "fscost-replay",
        "fscost-recording",
        "fscost-explain",
        "fscost-raid",
        "fscost-ssd",
        "fscost-strip",
        "fscost-traces",
        "fscost-wear",
    },
    "fscost-ssd": set[str](),
    "fscost-strip": {"fscost-explain", "fscost-ondisk", "fscost-recording"},
    "fscost-raid": set[str](),
    "fscost-traces": {"fscost-recording"},
    "fscost-wear": {
        "fscost-recording",
        "fscost-explain",
        "fscost-raid",
        "fscost-ssd",
        "fscost-traces",
    },
}
"""Our crates that each crate may depend on, for building or testing."""

NATIVE_FACES = {"python/fscost/capture.py", "python/fscost/latency/native.py"}
"""The only Python files that may touch `fscost._native`."""


def our_dependencies(environment: dict[str, str]) -> dict[str, set[str]]:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]
    answer = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment
    )
    packages = json.loads(answer.stdout)["packages"]
    ours = {package["name"] for package in packages}
    return {
        package["name"]: {dependency["name"] for dependency in package["dependencies"]} & ours
        for package in packages
    }


def test_crates_depend_only_on_those_that_they_may_know(with_cargo: dict[str, str]) -> None:
    dependencies = our_dependencies(with_cargo)
    assert set(dependencies) == set(ALLOWED), (
        "a crate came or went: decide here what it may depend on"
    )
    assert {
        name: found - ALLOWED[name] for name, found in dependencies.items() if found - ALLOWED[name]
    } == {}


class WithoutTypes(ast.NodeTransformer):
    """Removes imports that only a type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types and not node.orelse else node


def names_native(source: str) -> bool:
    for node in ast.walk(WithoutTypes().visit(ast.parse(source))):
        match node:
            case ast.Import(names=names) if any(
                name.name.startswith("fscost._native") for name in names
            ):
                return True
            case ast.ImportFrom(module=module, names=names) if "_native" in (module or "") or any(
                name.name == "_native" for name in names
            ):
                return True
            case ast.Constant(value="fscost._native"):  # importlib
                return True
    return False


@pytest.mark.parametrize(
    "source",
    [
        "import fscost._native",
        "from fscost import _native",
        "from fscost._native import x",
        "from . import _native",
        "f('fscost._native')",
        "if TYPE_CHECKING:\n    x = 1\nelse:\n    import fscost._native",
    ],
)
def test_each_way_to_import_the_native_module_is_seen(source: str) -> None:
    assert names_native(source)


def test_types_of_the_native_module_are_no_access() -> None:
    assert not names_native("if TYPE_CHECKING:\n    from fscost._native import x")


def test_only_thin_faces_touch_the_native_module() -> None:
    files = (ROOT / "python").rglob("*.py")
    assert {
        str(file.relative_to(ROOT)) for file in files if names_native(file.read_text())
    } <= NATIVE_FACES


def test_every_room_of_the_architecture_exists() -> None:
    before, text = (ROOT / "ARCHITECTURE.md").read_text().split("\n## Rooms, and ", 1)
    rooms = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(rooms) >= 10
    assert [room for room in rooms if not (ROOT / room).exists()] == []
    parts = re.findall(r"^\| `([\w./]+)` \|", before, re.MULTILINE)
    assert len(parts) >= 5
    explain = ROOT / "crates/explain/src"
    assert [part for part in parts if not (explain / part).exists()] == []


def test_every_room_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    plain = {"__init__", "__main__", "errors"}
    rooms = {
        path
        for path in (ROOT / "python/fscost").iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    rooms |= set((ROOT / "crates").iterdir())
    missing = {
        str(path.relative_to(ROOT))
        for path in rooms
        if path.stem not in plain and f"`{path.relative_to(ROOT)}`" not in text
    }
    assert missing == set(), "say in ARCHITECTURE.md what it does and what it must not know"
