"""Fixtures shared by all tests: the seed, and the visible skip of tests that lack a privilege."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import workers
from tests.schemas import valid
from xdist.remote import Producer

from fscost.host import install_command, tool
from fscost.lab.vm.qemu import PROGRAM as QEMU
from fscost.report import document
from fscost.run import estimate

SEED = int(os.environ.get("FSCOST_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
"""Seed of a whole test run. Set FSCOST_TEST_SEED to the seed printed by a failing run to repeat
it."""
os.environ["FSCOST_TEST_SEED"] = str(
    SEED
)  # for pytest-xdist's workers, each of which reads this file

# A shell's background job ignores SIGINT, and so do all processes that it starts (signal(7)); tests
# of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine, generating examples may take long.
settings.register_profile(
    "fscost",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fscost")


STARTED = float(os.environ.setdefault("FSCOST_TEST_STARTED", str(time.time())))
"""When the test run started, in seconds since 1970; the same in pytest-xdist's workers."""


def why_no_root_tests() -> str | None:
    """Return None if file systems can be made and mounted here; otherwise what is missing."""
    if os.geteuid() != 0:
        return "not root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        try:
            os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return (
                f"{device}: {error.strerror} (in a container: run it privileged, with that device)"
            )
    capabilities = int(
        next(
            line
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("CapEff")
        ).split()[1],
        16,
    )
    if not capabilities >> 21 & 1:
        return "root, but without CAP_SYS_ADMIN: no mounts here"
    return None


def why_no_guest_tests() -> str | None:
    """Return None if virtual machines can run here; otherwise the reason."""
    if tool(QEMU) is None:
        return f"{QEMU} is missing: `{install_command([QEMU])}`"
    until = float(os.environ.get("FSCOST_TEST_GUESTS_UNTIL") or "inf")
    if until < STARTED:
        return f"this machine is slow: the build ended {STARTED - until:.0f} s too late for guests"
    return None


def why_no_long_tests() -> str | None:
    """Return None if long tests are requested; otherwise the reason."""
    if os.environ.get("FSCOST_TEST_LONG"):
        return None
    return "only `make soak` runs long tests and all variants of a test"


def why_no_browser_tests() -> str | None:
    """Return None if a page can be opened in the distribution's Chromium; otherwise the reason."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    packages = "apt-get install chromium chromium-driver"
    return f"{' and '.join(missing)} missing: `{packages}`" if missing else None


WHY_NOT = {
    "root": why_no_root_tests,
    "guest": why_no_guest_tests,
    "browser": why_no_browser_tests,
    "long": why_no_long_tests,
}
"""Check for each marker."""


def pytest_report_header() -> list[str]:
    reasons = {marker: why_not() for marker, why_not in WHY_NOT.items()}
    return [
        f"FSCOST_TEST_SEED={SEED}",
        *(
            f"{marker} tests: {'run' if reason is None else f'SKIPPED, because {reason}'}"
            for marker, reason in reasons.items()
        ),
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: workers.place(item.nodeid))
    for marker, why_not in WHY_NOT.items():
        reason = why_not()
        for item in items:
            if reason is not None and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") and why_no_root_tests() in (None, "not root"):
        workers.isolate(config)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> workers.Scheduler:
    config.option.loadscopereorder = False  # it would put the units with most tests first
    return workers.Scheduler(config, log)


@pytest.fixture
def seed() -> int:
    """The seed of this test run, for a test's own random choices."""
    return SEED


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Create a folder limited to a size in the syntax of tmpfs(5); one for each test."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(room: str) -> Path:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], check=True)
        return folder

    yield mount
    # Native work runs on threads, which close their file a moment after the error is raised.
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def roomy_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with disk and memory to spare, whatever this one has: a run is refused below 5 % free
    space."""
    monkeypatch.setattr(
        estimate, "disk_usage", lambda _: SimpleNamespace(total=1 << 40, free=1 << 39)
    )
    of_host = estimate.memory_available_bytes
    monkeypatch.setattr(
        estimate,
        "memory_available_bytes",
        lambda *meminfo: of_host(*meminfo) if meminfo else 1 << 34,
    )


@pytest.fixture(autouse=True)
def _valid_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate all JSON that fscost prints in any test against its schema."""
    printed = document.text

    def checked(kind: str, value: Mapping[str, Any]) -> str:
        text = printed(kind, value)
        valid(text)
        return text

    monkeypatch.setattr(document, "text", checked)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """Seed `random`, so that tests that draw from it implicitly are repeatable in any order."""
    state = random.getstate()
    random.seed(SEED)
    yield
    random.setstate(state)
