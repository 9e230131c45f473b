"""Site of `fscost serve`: it shows a folder of runs to browsers on this machine, and writes
nothing."""

import contextlib
import hmac
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from fscost.errors import FscostError
from fscost.report.html import html_text, site
from fscost.results import MANIFEST, load, salvaged
from fscost.view.changes import compared
from fscost.view.page import page
from fscost.view.runs import Listed, key, listed

LOOPBACK = "127.0.0.1"
_MOST_PAGES = 16
"""Number of pages kept in memory: making one takes seconds, because it explains recordings."""
_REQUEST_LIMIT_S = 30
_MOST_REQUESTS = 32
"""Number of requests answered at once. For a connection beyond it, the oldest one without the token
is closed: other users of this machine can open connections, too."""
_CLOSING_S = 5
"""Time that a connection may take to end after it was closed."""
_TOKEN = "token"


class _NotFoundError(FscostError):
    """Error for an address without a page."""


class Site(ThreadingHTTPServer):
    """The listening server. OSError if the port is taken."""

    daemon_threads = True
    request_queue_size = _MOST_REQUESTS

    def __init__(self, folder: Path, port: int, *, trust: bool) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.folder = folder
        self.trust = trust
        self._token = secrets.token_urlsafe(16)
        self._free = BoundedSemaphore(_MOST_REQUESTS)
        self._strangers: dict[Any, None] = {}
        """Connections that have not shown the token, the oldest first."""
        self._knowing = Lock()
        self._pages: dict[tuple[Path, int], str] = {}
        # The process has one chart compiler, and building two pages at once would double the
        # memory. So would two lists of runs, which do not wait for a page.
        self._lock, self._listing = Lock(), Lock()

    @property
    def address(self) -> str:
        """Address of the first page, with a token: other users of this machine can reach the port,
        and must not read the caller's runs."""
        return f"http://{LOOPBACK}:{self.server_port}/?{_TOKEN}={self._token}"

    @property
    def cookie(self) -> str:
        """Cookie that stands for the token on later pages. Browsers share cookies between ports, so
        its name holds the port."""
        return f"fscost-{self.server_port}={self._token}; HttpOnly; SameSite=Strict; Path=/"

    def is_token(self, text: str) -> bool:
        """Check a token in constant time, so that it cannot be guessed step by step."""
        return hmac.compare_digest(text.encode(), self._token.encode())

    def knows(self, cookies: str) -> bool:
        """Check a request's cookies for the token."""
        try:
            found = SimpleCookie(cookies).get(f"fscost-{self.server_port}")
        except CookieError:
            return False
        return found is not None and self.is_token(found.value)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection on a thread of its own. If too many are open, close one."""
        if not self._free.acquire(blocking=False):
            self._turn_away()
            if not self._free.acquire(timeout=_CLOSING_S):
                self.shutdown_request(request)
                return
        with self._knowing:
            self._strangers[request] = None
        super().process_request(request, client_address)

    def _turn_away(self) -> None:
        """Close the oldest connection that has not shown the token."""
        with self._knowing:
            if (request := next(iter(self._strangers), None)) is not None:
                del self._strangers[request]
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def admit(self, request: Any) -> None:
        """Note that a connection has shown the token, or has ended."""
        with self._knowing:
            self._strangers.pop(request, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:  # noqa: BLE001  # A client that went away.
            self.handle_error(request, client_address)
        finally:
            self.admit(request)
            self.shutdown_request(request)
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away."""

    def is_own(self, host: str) -> bool:
        """Check that a request's Host names this server. A foreign page whose host name resolves to
        127.0.0.1 (DNS rebinding) must not read runs."""
        return host in {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    def text(self, target: str) -> str:
        """Return the page at this address. FscostError if there is none, or it cannot be made."""
        address = urlsplit(target)
        query = parse_qs(address.query, errors="replace")
        parts = [part for part in address.path.split("/") if part]
        if not parts:
            return site.index(self._listed(), _one(query, "q"))
        if parts == ["compare"]:
            before, after = (self._run(_one(query, name)) for name in ("a", "b"))
            with self._lock:
                results = [load(run.folder, trust=self.trust) for run in (before, after)]
                return site.compare(before, after, compared(*results))
        if len(parts) == 2 and parts[0] == "run":
            return self._report(self._run(key(unquote_to_bytes(parts[1]))))
        raise _NotFoundError("there is no such page", "begin with the list of all runs")

    def _listed(self) -> list[Listed]:
        with self._listing:
            return listed(self.folder, trust=self.trust)

    def _run(self, wanted: str) -> Listed:
        """Find a run by its key among the listed runs, so that no address can reach other
        folders."""
        for run in self._listed():
            if run.key == wanted:
                return run
        raise _NotFoundError("there is no such run", "it may have been moved; look at all runs")

    def _report(self, run: Listed) -> str:
        version = (run.folder, (run.folder / MANIFEST).stat().st_mtime_ns)
        with self._lock:
            if version not in self._pages:
                text = html_text(page(*salvaged(run.folder, trust=self.trust)))
                while len(self._pages) >= _MOST_PAGES:
                    self._pages.pop(next(iter(self._pages)))
                self._pages[version] = text
            return self._pages[version]


def _one(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]


class _Handler(BaseHTTPRequestHandler):
    server: Site
    server_version = "fscost"
    sys_version = ""
    timeout = _REQUEST_LIMIT_S

    def do_GET(self) -> None:
        self._answer(self.wfile.write)

    def do_HEAD(self) -> None:
        self._answer(lambda _: None)

    def _answer(self, write: Callable[[bytes], Any]) -> None:
        status, text = self._page()
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        if status is HTTPStatus.SEE_OTHER:
            self.send_header("Location", "/")
            self.send_header("Set-Cookie", self.server.cookie)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        # Beside the policy in each page, which cannot name the last one.
        self.send_header(
            "Content-Security-Policy",
            "base-uri 'none'; form-action 'self'; object-src 'none'; frame-ancestors 'none'",
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        write(body)

    def _page(self) -> tuple[HTTPStatus, str]:
        if not self.server.is_own(self.headers.get("Host", "")):
            return HTTPStatus.FORBIDDEN, site.problem(
                "Refused",
                "the address names another host than this server",
                "open the address that `fscost serve` printed",
            )
        try:
            query = parse_qs(urlsplit(self.path).query, errors="replace")
            if self.server.is_token(_one(query, _TOKEN)):
                return HTTPStatus.SEE_OTHER, ""
            if not self.server.knows(self.headers.get("Cookie", "")):
                return HTTPStatus.FORBIDDEN, site.problem(
                    "Refused",
                    "this browser has no token",
                    "open the address that `fscost serve` printed",
                )
            self.server.admit(self.connection)
            return HTTPStatus.OK, self.server.text(self.path)
        except _NotFoundError as error:
            return HTTPStatus.NOT_FOUND, site.problem("Not found", error.what, error.remedy or "")
        except Exception as error:  # noqa: BLE001  # A page, not a traceback in the terminal.
            known = error if isinstance(error, FscostError) else FscostError(str(error))
            text = site.problem("This cannot be shown", known.what, known.remedy or "")
            return HTTPStatus.UNPROCESSABLE_ENTITY, text

    def log_message(self, *_: Any) -> None:
        """Log no requests."""
