"""The site of `fscost serve`, over HTTP."""

import http.client
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from fscost.report.site import Site
from fscost.view.runs import Listed

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
    def ask(
        target: str, method: str = "GET", host: str | None = None, cookie: str = site.cookie
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", site.server_port, timeout=60)
        headers = {"Cookie": cookie.split(";")[0]} | ({} if host is None else {"Host": host})
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
    assert (status, "/run/tuesday/" in found, "/run/monday/" in found) == (200, True, False)
    assert "Since monday: " in found
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


@pytest.mark.parametrize("cookie", ["", "fscost-1=x", "=;", 'fscost-{port}="', "fscost-{port}=x"])
def test_without_the_token_nothing_is_shown(get: Get, site: Site, cookie: str) -> None:
    status, text = get("/run/monday/", cookie=cookie.format(port=site.server_port))
    assert (status, "has no token" in text, "monday" in text) == (403, True, False)
    assert get("/?token=x", cookie="")[0] == 403


def test_the_printed_address_gives_the_cookie(get: Get, site: Site) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.server_port, timeout=60)
    connection.request("GET", f"/?{site.address.partition('?')[2]}")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert get("/", cookie=answer.headers["Set-Cookie"])[0] == 200


def test_no_request_prints_a_traceback(
    get: Get, site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", site.server_port)) as odd:
        host = f"127.0.0.1:{site.server_port}"
        odd.sendall(f"GET http://[/ HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        assert odd.makefile("rb").readline().startswith(b"HTTP/1.0 422 ")
    gone = socket.create_connection(("127.0.0.1", site.server_port))
    gone.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()  # with a reset
    assert get("/")[0] == 200
    assert capfd.readouterr().err == ""


def test_slow_clients_do_not_lock_the_owner_out(get: Get, site: Site) -> None:
    """1,200 slow clients had 212 threads; then, 32 that sent a byte now and then had all places."""
    before = threading.active_count()
    slow = [socket.create_connection(("127.0.0.1", site.server_port)) for _ in range(100)]
    for each in slow[-31:]:
        each.sendall(b"GET / HTTP/1.1\r\n")
    assert get("/")[0] == 200
    assert threading.active_count() - before <= 32
    for each in slow[:-31]:
        assert each.recv(1) == b""
    assert select.select(slow[-31:], [], [], 0) == ([], [], [])
    for each in slow:
        each.close()


def test_one_list_of_runs_is_made_at_a_time(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes the memory of the largest manifest."""
    makers: list[int] = []
    most: list[int] = []

    def listed(_: Path, *, trust: bool) -> list[Listed]:
        makers.append(1)
        most.append(len(makers))
        time.sleep(0.1)
        makers.pop()
        return []

    monkeypatch.setattr("fscost.report.site.listed", listed)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(get, target) for target in ("/", "/run/monday/") * 4]
        assert [each.result()[0] for each in asked] == [200, 404] * 4
    assert most == [1] * 8


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
