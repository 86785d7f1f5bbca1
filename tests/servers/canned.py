"""A real HTTP server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from servers.answering import answering


@dataclass(frozen=True)
class Answer:
    """`cut`: promise the whole body and send only so many bytes; `hang_up`: send nothing at all."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang_up: bool = False


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class Canned:
    """Answers one after the other, whatever is asked, or by method and path; the last is given again and again."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer] = []
        self.places: dict[str, list[Answer]] = {}
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def says(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def at(self, place: str, *answers: Answer) -> None:
        """Answer so at `METHOD /path`, below the API's root; elsewhere there is nothing."""
        self.places[place] = list(answers)

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.path.removeprefix('/api/v1')}" for request in self.requests]

    def next(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            answers = self.places.get(self.asked[-1], [_NOTHING]) if self.places else self.answers
            return answers.pop(0) if len(answers) > 1 else answers[0]


def document(value: Any, status: int = 200, **headers: str) -> Answer:
    text = value if isinstance(value, str) else json.dumps(value)
    return Answer(text.encode(), status, {"Content-Type": "application/json", **headers})


def problem(code: str, status: int, detail: str = "it is so", **more: Any) -> Answer:
    told = {"type": f"urn:prony:{code}", "title": code, "status": status, "code": code, "detail": detail} | more
    return Answer(json.dumps(told).encode(), status, {"Content-Type": "application/problem+json"})


_NOTHING = problem("not_found", 404, "there is nothing like that")


def stream(*messages: tuple[str, str], cut: bool = False) -> Answer:
    """Return an event stream; a cut one ends in the middle of its last message."""
    text = ": beat\n\n" + "".join(f"event: {event}\ndata: {data}\n\n" for event, data in messages)
    body = text.encode()
    return Answer(body, 200, {"Content-Type": "text/event-stream"}, cut=len(body) - 3 if cut else None)


@contextmanager
def canned() -> Iterator[Canned]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    found = Canned(f"http://127.0.0.1:{server.server_address[1]}")
    server.canned = found  # type: ignore[attr-defined]
    with answering(server):
        yield found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", 0))
        request = Request(self.command, parts.path, parse_qs(parts.query), dict(self.headers), self.rfile.read(length))
        found: Canned = self.server.canned  # type: ignore[attr-defined]
        answer = found.next(request)
        self.close_connection = True
        if answer.hang_up:
            return
        self.send_response(answer.status)
        self.send_header("Connection", "close")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass
