"""HTTP/1.1 wire: write requests and recognise whole replies with their status.

Replies are framed by httptools. A reply whose head was seen before, byte for byte, and which comes whole in one read is
framed by its length alone: servers repeat themselves, and this is most of what framing a short reply costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httptools

from prony.load.wire import Wire
from prony.ports.driver import Cause, Endpoint

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection

_BLANK = b"\r\n\r\n"
_MOST_HEADS = 4096
_OK, _STATUS, _MALFORMED = int(Cause.OK), int(Cause.STATUS), int(Cause.MALFORMED)


class _Framing:
    """What the parser calls; it looks once which of these are set, and does not spend time on the others."""

    __slots__ = ("on_body", "on_headers_complete", "on_message_complete")

    on_body: Callable[[bytes], None]
    on_headers_complete: Callable[[], None]
    on_message_complete: Callable[[], None]


class HttpWire(Wire):
    """Options: `good` are statuses that count as success beside those below 400; `bodyless`: replies to HEAD."""

    # Heads of whole replies: what the rest of each is. Shared by all lines, because servers are.
    heads: dict[bytes, tuple[bytes, int, int, int]] = {}  # noqa: RUF012 - one for the process, as said

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._good = frozenset(options.get("good", ()))
        self._bodyless = bool(options.get("bodyless", False))
        self._keeps = line.keeps
        self._keep = line.keep
        self._done = line.done
        self._last = (b"\n", -1, 0, 0)  # head, size, status and cause of the last reply that was framed by its length
        self._fresh = True
        self._whole = False
        self._status = 0
        self._head = b""
        self._count = 0
        self._is_headed = False
        self._parser = self._new_parser()

    def _new_parser(self) -> httptools.HttpResponseParser:
        framing = _Framing()
        framing.on_message_complete = self._complete
        if self._keeps:
            framing.on_body = self._keep
        if self._bodyless:
            framing.on_headers_complete = self._complete
        return httptools.HttpResponseParser(framing)

    def data_received(self, data: bytes) -> None:
        if self._fresh:
            head, size, status, cause = self._last
            if size == len(data) and data.startswith(head):
                if self._keeps and size > len(head):
                    self._keep(data[len(head) :])
                self._done(status, cause)
                return
            at = data.find(_BLANK) + 4
            known = self.heads.get(data[:at])
            if known is not None and known[1] == len(data):
                self._last = known
                self.data_received(data)
                return
            self._fresh = False
            self._count, self._head, self._is_headed = 1, data, at > 3
        else:
            self._count += 1
            if not self._is_headed:
                self._head += data
                self._is_headed = _BLANK in self._head
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            # Also raised where a reply is followed by bytes that nobody asked for.
            self.line.fail(_MALFORMED)
            return
        if self._whole:
            self._finish()

    def _complete(self) -> None:
        """Called by the parser within `feed_data`: only there does it still know whether the line may go on."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        self._whole, self._status = True, status
        if not self._parser.should_keep_alive():
            self.line.last()

    def _finish(self) -> None:
        self._whole, self._fresh = False, True
        status = self._status
        cause = _STATUS if status >= 400 and status not in self._good else _OK
        if self._bodyless:
            self._parser = self._new_parser()
        elif self._count == 1 and not self.line.is_last:
            self._learn(self._head, status, cause)
        self.line.done(status, cause)

    def _learn(self, data: bytes, status: int, cause: int) -> None:
        """Remember the head of a reply that came in one piece and says its length."""
        head = data[: data.find(_BLANK) + 4]
        words = head.lower()
        has_length = b"\r\ncontent-length:" in words and b"\r\ntransfer-encoding:" not in words
        if has_length and words.startswith(b"http/1.1 ") and len(self.heads) < _MOST_HEADS:
            self.heads[head] = (head, len(data), status, cause)

    def connection_lost(self) -> None:
        del self._parser

    def eof_received(self) -> int:
        if self._fresh:
            return Cause.RESET
        words = self._head.partition(_BLANK)[0].lower()
        if not self._is_headed or b"\r\ncontent-length:" in words or b"\r\ntransfer-encoding:" in words:
            return Cause.TRUNCATED
        # Neither a length nor chunks: the reply ends where the connection does.
        status = self.line.status = self._parser.get_status_code()
        return Cause.STATUS if status >= 400 and status not in self._good else Cause.OK


def request_bytes(
    method: str, path: str, endpoint: Endpoint, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Return one whole request; what the caller's headers leave out is added: host, length."""
    target = quote_path(endpoint, path)
    given = {name.lower(): (name, value) for name, value in (headers or {}).items()}
    given.setdefault("host", ("Host", host_of(endpoint)))
    if body or method.upper() in ("POST", "PUT", "PATCH"):
        given["content-length"] = ("Content-Length", str(len(body)))
    lines = [f"{method.upper()} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.values())]
    checked_lines(lines)
    return "\r\n".join(lines).encode("latin-1") + _BLANK + body


def checked_lines(lines: Iterable[str]) -> None:
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header or a path must not contain a line break")


def quote_path(endpoint: Endpoint, path: str) -> str:
    return quote(target_of(endpoint, path), safe="/?&=%:@!$'()*+,;~#[]-._")


def target_of(endpoint: Endpoint, path: str) -> str:
    """Return a request's path behind what the endpoint's address has; without one it is the address itself."""
    whole = (endpoint.base.rstrip("/") + path if path else endpoint.base) or "/"
    return f"{whole}{'&' if '?' in whole else '?'}{endpoint.query}" if endpoint.query else whole


def host_of(endpoint: Endpoint) -> str:
    if endpoint.path:
        return "localhost"
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return host if endpoint.port == (443 if endpoint.tls else 80) else f"{host}:{endpoint.port}"
