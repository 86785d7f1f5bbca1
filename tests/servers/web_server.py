"""Real HTTP server for tests that breaks off, lies, hangs and redirects on request."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from servers.answering import answering


@dataclass
class Page:
    """How the server answers for one path. `cuts` are consumed one a request: break off after so many bytes."""

    content: bytes = b""
    etag: str = '"v1"'
    modified: str = ""
    status: int = 200
    location: str = ""
    cuts: list[int] = field(default_factory=list)
    honours_range: bool = True
    wrong_range: bool = False
    says_length: bool = True
    declared: int | None = None
    statuses: list[int] = field(default_factory=list)
    hangs: bool = False
    encoding: str = ""


class Handler(BaseHTTPRequestHandler):
    server: WebServer

    def do_GET(self) -> None:
        self.server.log.append((self.path, dict(self.headers)))
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
        elif page.hangs:
            self.server.released.wait(120)
        elif page.statuses:
            self.send_error(page.statuses.pop(0))
        elif page.location:
            self.send_response(302)
            self.send_header("Location", page.location)
            self.end_headers()
        elif (page.etag and self.headers.get("If-None-Match") == page.etag) or (
            page.modified and self.headers.get("If-Modified-Since") == page.modified
        ):
            self.send_response(304)
            self.end_headers()
        else:
            self._send(page)

    def _send(self, page: Page) -> None:
        begin = self._begin(page)
        body = page.content[begin:]
        self.send_response(206 if begin else page.status)
        if begin:
            shown = begin + 1 if page.wrong_range else begin
            self.send_header("Content-Range", f"bytes {shown}-{len(page.content) - 1}/{len(page.content)}")
        for name, value in (("ETag", page.etag), ("Last-Modified", page.modified), ("Content-Encoding", page.encoding)):
            if value:
                self.send_header(name, value)
        if page.says_length:
            self.send_header("Content-Length", str(len(body) if page.declared is None else page.declared))
        self.end_headers()
        self.wfile.write(body[: page.cuts.pop(0)] if page.cuts else body)

    def _begin(self, page: Page) -> int:
        match = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if match is None or not page.honours_range:
            return 0
        if self.headers.get("If-Range") not in (page.etag, page.modified):
            return 0
        return int(match[1])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep the test's output clean."""


class WebServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Page] = {}
        self.log: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what some tests are about."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


@contextmanager
def serving() -> Iterator[WebServer]:
    """A server that answers for as long as the block runs."""
    server = WebServer()
    with answering(server):
        try:
            yield server
        finally:
            server.released.set()
