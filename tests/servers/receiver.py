"""HTTP server on loopback that records alarm messages and answers as configured."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """`statuses` are what the next requests are answered with, and 200 after them; while `gate` is shut nobody is."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def url(self, scheme: str = "webhook+http", path: str = "/hook/sEcReT") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def wait(self, count: int = 1, within_s: float = 90.0) -> list[Received]:
        """Return everything that came, when so many more have."""
        for _ in range(count):
            assert self.came.acquire(timeout=within_s), f"only {len(self.received)} came"
        return list(self.received)


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made.received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status = made.statuses.pop(0) if made.statuses else 200
            made.came.release()
            made.gate.wait(120)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"http://127.0.0.1:{made.port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Whoever was killed reads no answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.gate.set()
            server.shutdown()
            thread.join()
