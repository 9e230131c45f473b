"""The site of `fscost serve`, over HTTP."""

import http.client
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from fscost.report.site import Site

from .conftest import HOSTILE, make_run


@pytest.fixture
def folder(hostile_run: Path, tmp_path: Path) -> Path:
    """A folder with a hostile and a plain run name, an unreadable run and a link, and a
    neighbouring run outside it."""
    place = tmp_path / "runs"
    place.mkdir()
    shutil.copytree(hostile_run, place / "a<b>&'\"c d%2f")
    for name in ("monday", "tuesday"):
        make_run(place / name, "ext4", "xfs")
    (place / "broken").mkdir()
    (place / "broken/manifest.json").write_text("{")
    (place / "link").symlink_to("monday")
    make_run(tmp_path / "secret", "ext4")
    return place


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with Site(folder, 0, trust=False) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


Get = Callable[..., tuple[int, str]]


@pytest.fixture
def get(site: Site) -> Get:
    def ask(target: str, method: str = "GET", host: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", site.server_port, timeout=60)
        headers = {} if host is None else {"Host": host}
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return ask


def seen(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


def test_runs_are_listed_searched_shown_and_compared(get: Get, folder: Path) -> None:
    before = seen(folder)
    status, listed = get("/")
    assert status == 200
    assert listed.index("tuesday") < listed.index("monday")
    assert "unreadable: " in listed
    assert '"/run/link/"' not in listed
    status, found = get("/?q=TUESDAY")
    assert (status, "tuesday" in found, "monday" in found) == (200, True, False)
    status, page = get("/run/monday/")
    assert (status, "wrote the least" in page) == (200, True)
    assert get("/run/monday/") == (200, page)
    status, text = get("/compare?a=monday&b=tuesday")
    assert (status, "No difference found." in text, "xfs" in text) == (200, True, True)
    assert seen(folder) == before


def test_names_stay_text(get: Get) -> None:
    _, listed = get("/")
    assert HOSTILE not in listed
    name = quote("a<b>&'\"c d%2f", safe="")
    assert f'href="/run/{name}/"' in listed
    status, page = get(f"/run/{name}/")
    assert (status, HOSTILE in page) == (200, False)
    status, text = get(f"/compare?a={quote(name)}&b={quote(name)}")
    assert (status, HOSTILE in text) == (200, False)
    _, found = get(f"/?q={quote(HOSTILE)}")
    assert HOSTILE not in found


@pytest.mark.parametrize(
    "target",
    [
        "/run/../../secret/",
        "/run/..%2f..%2fsecret/",
        "/run/%2e%2e/",
        "/run/link/",
        "/run//etc/",
        "/run/monday/manifest.json",
        "/compare?a=monday",
        "/compare?a=../secret&b=monday",
        "/favicon.ico",
        "/run/%ff%fe/",
    ],
)
def test_only_what_is_listed_is_read(get: Get, target: str) -> None:
    status, text = get(target)
    assert (status, "Not found" in text) == (404, True)


def test_an_unreadable_run_says_why(get: Get) -> None:
    for target in ("/run/broken/", "/compare?a=broken&b=monday"):
        status, text = get(target)
        assert (status, "manifest.json" in text) == (422, True)


def test_no_other_name_and_no_other_method(get: Get, site: Site) -> None:
    assert get("/", host="runs.example:80")[0] == 403
    assert get("/", host=f"localhost:{site.server_port}")[0] == 200
    assert get("/", "HEAD") == (200, "")
    assert get("/", "POST")[0] == 501
    assert site.server_address[0] == "127.0.0.1"


def test_the_command_says_where_and_ends(folder: Path) -> None:
    program = Path(sys.executable).with_name("fscost")
    command = [program, "serve", folder, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        port = int(it.stdout.readline().split("/")[2].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)):
            it.send_signal(2)
        assert it.wait(60) == 130
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            again = [*command[:-1], str(taken.getsockname()[1])]
            done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert (done.returncode, "cannot listen" in done.stderr) == (2, True)
    for words in (["missing"], [os.devnull], [str(folder), "--port", "70000"]):
        done = subprocess.run(
            [program, "serve", *words], capture_output=True, text=True, check=False
        )
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
