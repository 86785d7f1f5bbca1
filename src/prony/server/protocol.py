"""One connection as uvicorn reads it, with limits on the head, the trailers and the time that a head may take.

The parser itself takes a head of any length, and needs longer for each byte of it. uvicorn waits for the rest of a head
for ever, and answers one that it cannot read as plain text.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from prony.server.connections import Connections, descriptor_limits
from prony.server.middleware import HEADERS
from prony.server.problems import RequestError, refusal, status_phrase

MOST_HEAD = 64 * 1024
# Trailers and chunk extensions of one body, beyond the plain framing of its chunks.
MOST_EXTRA = 16 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_FRAMING = 16  # bytes that say where a chunk begins and ends
# How long a client may take to send a head, and how long a body may bring nothing.
HEAD_S = 20.0
BODY_S = 120.0
# A refused client may still be sending, and a close would reset the connection before it reads why. So what it sends is
# thrown away for this long and this many bytes at most.
LINGER_S = 2.0
MOST_LINGER = 8 * 2**20


_TOLD = {
    400: "connection closed: this is not an HTTP request",
    408: "connection closed: the request headers did not arrive in time",
    431: "connection closed: the request exceeds a limit",
}


class LimitedProtocol(HttpToolsProtocol):
    """One connection. A subclass made by `protocol_for` counts it among those of its server."""

    shared: ClassVar[Connections]
    _deadline: asyncio.TimerHandle | None = None
    _is_counted = False
    _in_head = True  # no whole head has come since the last request
    _in_body = False
    _head = 0  # bytes of this head so far
    _extra = 0  # bytes of this body so far that are none of its content
    _is_refused = False  # its last answer is out: what still comes is thrown away
    _thrown_away = 0  # bytes since it was refused
    _last_s = 0.0  # when something came last
    _pieces: list[bytes]  # of this body, since the parser was last fed
    _cycles: list[RequestResponseCycle]  # requests that may not be answered yet

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._cycles = []
        super().connection_made(transport)
        self._is_counted = self.shared.add(self, self._address)
        if not self._is_counted:
            error = RequestError("too many connections are open", status=503, code="busy", hint="try again in a moment")
            self._refuse(error)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        if self._is_counted:
            self._is_counted = False
            self.shared.remove(self, self._address)
        self._give_up_answers()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def evict(self) -> None:
        """Make room for another connection."""
        self._abort()

    def _abort(self) -> None:
        self._give_up_answers()
        self.transport.abort()

    def _give_up_answers(self) -> None:
        """Let nobody write to a connection that is closed; uvicorn itself tells only the last request of it."""
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    @property
    def _address(self) -> str:
        return str(self.client[0]) if self.client else ""

    # What comes in

    def data_received(self, data: bytes) -> None:
        self._last_s = self.loop.time()
        if self._in_head and not self._head and self._is_answered:
            self._begin_head()
        at = 0
        while at < len(data) and not self._is_over and self.parser is not None:
            until = at + MOST_HEAD
            if self._in_head:
                until += 1 - self._head
                end = data.find(_END_OF_HEAD, at, until)
                until = end + len(_END_OF_HEAD) if end >= 0 else until
            self._receive(data[at:until])
            at = until
        if self._is_refused:
            self._throw_away(len(data) - at)

    @property
    def _is_over(self) -> bool:
        """Is nothing more read of what comes in?"""
        return self._is_refused or bool(self.transport.is_closing())

    def _receive(self, piece: bytes) -> None:
        was_in_head, was_in_body = self._in_head, self._in_body
        if was_in_head:
            self._head += len(piece)
        if was_in_body:
            self._extra += len(piece)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserError:
            self.send_400_response("send an HTTP/1.1 request")
        except httptools.HttpParserUpgrade:
            pass  # it is answered as if it had not asked for another protocol
        if self._is_over:
            return
        self._hand_on_body()
        if was_in_head and self._in_head and self._head > MOST_HEAD:
            self._refuse(_too_large(f"the request headers are larger than {MOST_HEAD} bytes"))
        elif was_in_body and self._in_body and self._extra > MOST_EXTRA:
            self._refuse(_too_large(f"trailers and chunk extensions are larger than {MOST_EXTRA} bytes"))

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:  # a trailer: nobody reads it, and the request's headers have been looked at
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._head = self._extra = 0
        self._pieces = []
        self.shared.note_busy(self, self._address)
        self._set_deadline(BODY_S, self._check_body)
        super().on_headers_complete()
        self._cycles = [one for one in self._cycles if not one.response_complete]
        self._cycles.append(self.cycle)

    def on_chunk_header(self) -> None:
        self._extra -= _FRAMING

    def on_body(self, body: bytes) -> None:
        # uvicorn adds each piece to a growing whole: a body in chunks of one byte would stall the event loop.
        self._extra -= len(body)
        self._pieces.append(body)

    def _hand_on_body(self) -> None:
        if self._in_body and self._pieces:
            body, self._pieces = b"".join(self._pieces), []
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._hand_on_body()
        self._in_head, self._in_body = True, False
        self._set_deadline(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answered or not self._in_head or self._is_over:
            return
        if self._head:
            self._begin_head()
        else:
            self.shared.note_idle(self, self._address)

    @property
    def _is_answered(self) -> bool:
        """Has everything that was asked here been answered?"""
        return self._is_counted and self.cycle is not None and bool(self.cycle.response_complete)

    def _begin_head(self) -> None:
        self.shared.note_half_open(self, self._address)
        self._await_head()

    # Time

    def _await_head(self) -> None:
        self._set_deadline(HEAD_S, self._give_up_head)

    def _set_deadline(self, after_s: float | None, action: Any = None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(after_s, action) if after_s is not None else None

    def _give_up_head(self) -> None:
        if self.transport.is_closing():
            return
        if not self._head:  # it said nothing at all
            self.transport.close()
            return
        self._refuse(
            RequestError(f"the request headers did not arrive within {HEAD_S:g} s", status=408, code="too_slow",
                         hint="send the whole request at once")
        )  # fmt: skip

    def _check_body(self) -> None:
        """Let go of who has stopped sending; who waits until we read more has not."""
        idle_s = self.loop.time() - self._last_s
        if self.flow.read_paused or idle_s < BODY_S:
            self._set_deadline(BODY_S - idle_s if idle_s < BODY_S else BODY_S, self._check_body)
            return
        self.shared.tell("connection closed: the request body did not arrive in time", self._address)
        self._abort()

    # Refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(RequestError("this is not an HTTP request", status=400, code="malformed", hint=msg))

    def _refuse(self, error: RequestError) -> None:
        if error.status in _TOLD:
            self.shared.tell(_TOLD[error.status], self._address)
        if any(one.response_started and not one.response_complete for one in self._cycles):
            self._abort()  # half an answer is out: only closing tells
            return
        self._give_up_answers()
        response = refusal(error, {"Connection": "close"})
        head = [f"HTTP/1.1 {error.status} {status_phrase(error.status)}\r\n".encode()]
        pairs: list[Any] = [*self.server_state.default_headers, *HEADERS.items(), *response.raw_headers]
        head += [b"%s: %s\r\n" % pair for pair in pairs]
        self.transport.write(b"".join([*head, b"\r\n", bytes(response.body)]))
        self._linger()

    def _linger(self) -> None:
        """Say that nothing more comes from here, and close when the client has read it, or soon."""
        self._is_refused = True
        if not self._is_counted:  # there is no room for it
            self.transport.close()
            return
        self.shared.note_half_open(self, self._address)  # it may go where another needs its room
        self._set_deadline(LINGER_S, self.transport.close)
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write_eof()

    def _throw_away(self, count: int) -> None:
        self._thrown_away += count
        if self._thrown_away > MOST_LINGER:
            self.transport.close()


def _too_large(message: str) -> RequestError:
    return RequestError(message, status=431, code="too_large")


def protocol_for(connections: Connections) -> type[LimitedProtocol]:
    """Return the protocol of a server that counts its connections there."""

    class Protocol(LimitedProtocol):
        shared = connections

    return Protocol


def count_connections() -> Connections:
    """Return a count for all ports of this process, with limits below its number of descriptors."""
    return Connections(descriptor_limits())
