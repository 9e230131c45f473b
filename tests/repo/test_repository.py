"""Requirements for a clone, independent of the product's behaviour."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from tests.oracles.tagged_draw import GUESTS, NATIVE

ROOT = Path(__file__).resolve().parents[2]


def repository_files() -> list[Path]:
    """Return all files that git tracks or would add."""
    command = [
        "git",
        "-c",
        f"safe.directory={ROOT}",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def locked_pins(lock: str) -> dict[str, list[tuple[Version, str]]]:
    """Return for each name the pinned versions (one for each environment) and the text of the pin,
    with hashes."""
    pins: dict[str, list[tuple[Version, str]]] = {}
    for block in re.split(r"\n(?=[a-z])", (ROOT / lock).read_text()):
        if match := re.match(r"([a-z0-9.-]+)==([^ \\;]+)", block):
            pins.setdefault(match[1], []).append((Version(match[2]), block))
    return pins


def test_nothing_generated_or_large_is_committed() -> None:
    assert {
        str(path.relative_to(ROOT)): path.stat().st_size
        for path in repository_files()
        if path.stat().st_size > 1 << 20
    } == {}
    assert [path for path in repository_files() if path.suffix in {".so", ".pyc", ".whl"}] == []


LOCKS = {
    "requirements.lock": "build",
    "requirements-dev.lock": "dev",
    "requirements-docs.lock": "docs",
    "requirements-ray.lock": "ray",
    "requirements-fuzz.lock": "fuzz",
}
"""Extra of pyproject.toml in each lock file, besides the program's own dependencies."""


@pytest.mark.parametrize("lock", LOCKS)
def test_a_python_lock_holds_all_that_is_declared(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = locked_pins(lock)
    extras = project["optional-dependencies"]
    report = [] if LOCKS[lock] in ("ray", "fuzz") else extras["report"]
    for text in [*project["dependencies"], *report, *extras[LOCKS[lock]]]:
        requirement = Requirement(text)
        assert requirement.name in pins, f"{text}: not in {lock}; run make lock"
        for version, _ in pins[requirement.name]:
            assert requirement.specifier.contains(version), (
                f"{text}: {lock} has {version}; run make lock"
            )


@pytest.mark.parametrize("lock", [*LOCKS, "requirements-audit.lock"])
def test_every_python_pin_has_hashes(lock: str) -> None:
    pins = locked_pins(lock)
    assert len(pins) > 10
    assert [
        name
        for name, versions in pins.items()
        for _, block in versions
        if "--hash=sha256:" not in block
    ] == []


def test_the_lock_files_agree_and_a_user_gets_no_development_package() -> None:
    user, developer = locked_pins("requirements.lock"), locked_pins("requirements-dev.lock")
    for name in user.keys() & developer.keys():
        assert [version for version, _ in user[name]] == [
            version for version, _ in developer[name]
        ], f"{name}: run make lock"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert user.keys().isdisjoint(
        Requirement(text).name for text in project["optional-dependencies"]["dev"]
    )


@pytest.mark.parametrize("manifest", ["Cargo.toml", "fuzz/Cargo.toml"])
def test_the_rust_lock_is_up_to_date(manifest: str, with_cargo: dict[str, str]) -> None:
    command = [
        "cargo",
        "metadata",
        "--manifest-path",
        manifest,
        "--format-version",
        "1",
        "--locked",
        "--offline",
    ]
    answer = subprocess.run(
        command, cwd=ROOT, env=with_cargo, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


def test_one_version_and_one_licence() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    assert project["license"] == workspace["license"] == "Apache-2.0 OR MIT"
    for name in ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT"):
        assert (ROOT / name).is_file()
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text())
        assert package["package"]["version"] == {"workspace": True}, manifest
        assert package["lints"] == {"workspace": True}, manifest


def test_make_alone_names_every_target_that_a_person_may_want() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    help_text = subprocess.run(
        ["make", "-C", ROOT], check=True, capture_output=True, text=True, env=environment
    ).stdout
    for target in (
        "setup",
        "demo",
        "test",
        "check",
        "audit",
        "fuzz",
        "bench",
        "fmt",
        "lock",
        "wheel",
        "dist",
        "clean",
    ):
        assert re.search(rf"^ +make {target} +\S", help_text, re.MULTILINE), (
            f"{target} has no line of help"
        )


def test_ci_runs_what_a_person_runs() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    steps = re.findall(r"^(?:exec )?(make .*)$", text, re.MULTILINE)
    families = " ".join((*NATIVE, *GUESTS))
    test = 'make test PYTEST="--hypothesis-seed=$seed"'
    soak = f'make soak DRAWS=10 SEED="$seed" TARGETS="{families}" LONG="$long"'
    assert steps == [test, "make check", "make docs", "make audit", soak]
    long = re.findall(r"(tests/[\w/.]+)", text)
    assert len(long) > 2
    assert all((ROOT / path).exists() for path in long)


def test_a_forge_runs_the_same_commands() -> None:
    """Its workflows install what a clone needs, and leave the rest to CI's script and make."""
    folder = ROOT / ".github/workflows"
    found = {path.name: re.findall(r"- run: (.+)", path.read_text()) for path in folder.iterdir()}
    assert {name: runs[-1] for name, runs in found.items()} == {
        "ci.yml": ".ci/run",
        "release.yml": "make dist",
    }
    assert {name: len(runs) for name, runs in found.items()} == {"ci.yml": 3, "release.yml": 4}
    assert "make test-aarch64" in found["release.yml"]
    assert "secrets." not in "".join(path.read_text() for path in folder.iterdir())


@pytest.mark.parametrize(
    "document",
    [path for path in repository_files() if path.suffix == ".md"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text())
    assert [
        link
        for link in links
        if "://" not in link
        and not link.startswith("mailto:")
        and not (document.parent / link).exists()
    ] == []


def test_the_citation_names_the_version_of_the_workspace() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_no_file_names_a_home_that_nobody_stands_behind() -> None:
    """A publisher names the home in pyproject.toml; until then, reports would reach a stranger."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    homes = set(project.get("urls", {}).values())
    named = {
        found.group()
        for path in repository_files()
        if path.suffix in {".toml", ".cff", ".yml", ".md", ".py", ".rs", ".j2"}
        for found in re.finditer(r"https://[\w.]+/fscost/[\w-]+", path.read_text())
    }
    assert named <= homes
