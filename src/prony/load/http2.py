"""HTTP/2 wire: frame requests and parse the frames of replies.

One request at a time is in flight on a connection, as in HTTP/1.1: streams follow one another. The receive windows are
as large as they may be, so that no reply ever waits for us; the server's windows are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from prony.load import hpack
from prony.load.http import checked_lines, host_of, quote_path
from prony.load.wire import Wire
from prony.ports.driver import Cause, Endpoint

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection

_DATA, _HEADERS, _RST, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_MOST = 2**31 - 1
_DEFAULT_WINDOW, _DEFAULT_FRAME = 65_535, 16_384
_READ_FRAME = 2**16
_REFILL = 2**30
_LAST_STREAM = 2**30
# Settings: no table of headers, nothing pushed, the largest window, frames of 64 KiB.
_OURS = struct.pack(">HIHIHIHI", 1, 0, 2, 0, 4, _MOST, 5, _READ_FRAME)
_ID = struct.Struct(">I")
# Of HTTP/1.1, and not to be sent in HTTP/2.
_BARRED = frozenset(("connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"))


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + _ID.pack(stream) + content


PREFACE = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(_SETTINGS, 0, 0, _OURS)
    + frame(_WINDOW, 0, 0, _ID.pack(_MOST - _DEFAULT_WINDOW))
)
_SETTINGS_ACK = frame(_SETTINGS, _ACK, 0, b"")


class Http2Wire(Wire):
    """Options: `good` are statuses that count as success beside those below 400; `grpc`: the status is that of gRPC,
    which comes in the trailers. A request's content is its HEADERS frame, without a stream, and its body."""

    tls_protocols: ClassVar[tuple[str, ...]] = ("h2",)

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._good = frozenset(options.get("good", ()))
        self._is_grpc = bool(options.get("grpc", False))
        self._greets = True
        self._ended = False
        self._rest = b""
        self._stream = -1
        self._is_busy = False
        self._body = b""
        self._frame_most = _DEFAULT_FRAME
        self._first_window = _DEFAULT_WINDOW
        self._window = _DEFAULT_WINDOW  # of the connection: how much the server takes
        self._stream_window = 0
        self._read = 0
        self._block = b""
        self._block_ends = False
        self._status = 0
        self._grpc = -1

    def connection_made(self) -> None:
        # Requests come when the server has answered in kind: one that does not know HTTP/2 is found out here.
        self.line.write(PREFACE)

    def send(self, content: bytes) -> None:
        self._stream += 2
        self._is_busy, self._status, self._grpc = True, 0, -1
        if self._stream >= _LAST_STREAM:
            self.line.last()
        end = 9 + int.from_bytes(content[:3], "big")
        head = content[:5] + _ID.pack(self._stream) + content[9:end]
        self._body, self._stream_window = content[end:], self._first_window
        self._push(head)

    def _push(self, before: bytes = b"") -> None:
        """Write as much of the body as the server takes."""
        parts = [before] if before else []
        while self._body and (room := min(self._window, self._stream_window, self._frame_most)) > 0:
            piece, self._body = self._body[:room], self._body[room:]
            parts.append(frame(_DATA, 0 if self._body else _END_STREAM, self._stream, piece))
            self._window -= len(piece)
            self._stream_window -= len(piece)
        if parts:
            self.line.write(b"".join(parts))

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        at, size = 0, len(data)
        while size - at >= 9:
            end = at + 9 + int.from_bytes(data[at : at + 3], "big")
            kind, flags, stream = data[at + 3], data[at + 4], _ID.unpack_from(data, at + 5)[0] & _MOST
            is_foreign = self._greets and (kind != _SETTINGS or flags & _ACK or stream)
            if is_foreign or end - at - 9 > _READ_FRAME:
                self.line.fail(Cause.MALFORMED)
                return
            if end > size:
                break
            # What is left must be known before a reply is told: the next request may be sent from within.
            self._rest = b""
            if not self._took(kind, flags, stream, data[at + 9 : end]) and not self._ended:
                self.line.fail(Cause.MALFORMED)
            if self._ended:
                return
            at = end
        self._rest = data[at:]

    def _took(self, kind: int, flags: int, stream: int, content: bytes) -> bool:
        """Take one frame; False where it is none that may come now."""
        if kind == _DATA:
            return self._data(flags, stream, content)
        if kind in (_HEADERS, _CONTINUATION):
            return self._headers(kind, flags, stream, content)
        if self._block:
            return False  # nothing may come within a block of headers
        take = {
            _SETTINGS: self._settings,
            _PING: self._ping,
            _GOAWAY: self._goaway,
            _WINDOW: self._widen_window,
            _RST: self._reset,
        }.get(kind)
        return kind != _PUSH if take is None else take(flags, stream, content)

    # Replies

    def _data(self, flags: int, stream: int, content: bytes) -> bool:
        self._read += len(content)
        if self._read >= _REFILL:
            self.line.write(frame(_WINDOW, 0, 0, _ID.pack(self._read)))
            self._read = 0
        if self._block:
            return False
        if stream != self._stream or not self._is_busy:
            return stream < self._stream
        if flags & _PADDED:
            if not content or content[0] >= len(content):
                return False
            content = content[1 : len(content) - content[0]]
        if content and self.line.keeps:
            self.line.keep(content)
        if flags & _END_STREAM:
            self._finish()
        return True

    def _headers(self, kind: int, flags: int, stream: int, content: bytes) -> bool:
        if stream != self._stream or not self._is_busy or (kind == _CONTINUATION) != bool(self._block):
            return False
        if kind == _HEADERS:
            self._block_ends = bool(flags & _END_STREAM)
            padding = content[0] if flags & _PADDED and content else 0
            content = content[1 if flags & _PADDED else 0 : len(content) - padding]
            content = content[5:] if flags & _PRIORITY else content
        self._block += content
        if not flags & _END_HEADERS:
            return bool(self._block) and len(self._block) <= _READ_FRAME
        block, self._block = self._block, b""
        try:
            found = hpack.status_numbers(block)
        except hpack.BlockError:
            return False
        self._grpc = found.get("grpc", self._grpc)
        if not self._status and found.get("status", 0) >= 200:
            self._status = found["status"]
        if self._block_ends:
            self._finish()
        return True

    def _finish(self) -> None:
        """Tell a reply that is whole."""
        self._is_busy = False
        if self._body:
            # Answered before it was asked to the end: the stream stays open on our side, and nobody waits for it.
            self._body = b""
            self.line.last()
        if not self._status:
            self.line.fail(Cause.MALFORMED)
        elif self._is_grpc and self._status == 200:
            self._finish_grpc()
        else:
            is_bad = self._is_grpc or (self._status >= 400 and self._status not in self._good)
            self.line.done(self._status, Cause.STATUS if is_bad else Cause.OK)

    def _finish_grpc(self) -> None:
        if self._grpc < 0:
            self.line.fail(Cause.TRUNCATED)
        else:
            self.line.done(self._grpc, Cause.STATUS if self._grpc else Cause.OK)

    # The connection

    def _settings(self, flags: int, stream: int, content: bytes) -> bool:
        if stream or len(content) % 6:
            return False
        if flags & _ACK:
            return True
        for at in range(0, len(content), 6):
            name, value = struct.unpack_from(">HI", content, at)
            if name == 4:
                self._stream_window += value - self._first_window
                self._first_window = value
            elif name == 5:
                self._frame_most = value
        self.line.write(_SETTINGS_ACK)
        if self._greets:
            self._greets = False
            self.line.ready()
        elif self._is_busy and self._body:
            self._push()
        return True

    def _ping(self, flags: int, stream: int, content: bytes) -> bool:
        if not flags & _ACK:
            self.line.write(frame(_PING, _ACK, 0, content))
        return not stream and len(content) == 8

    def _goaway(self, flags: int, stream: int, content: bytes) -> bool:  # noqa: ARG002 - every frame is taken alike
        if len(content) < 8:
            return False
        if self._is_busy and _ID.unpack_from(content)[0] & _MOST >= self._stream:
            self.line.last()
            return True
        if self._is_busy:
            self.line.reads = 0  # the server says that it has had nothing of this request
        self.line.fail(Cause.RESET)
        return True

    def _widen_window(self, flags: int, stream: int, content: bytes) -> bool:  # noqa: ARG002 - every frame is taken alike
        if len(content) != 4:
            return False
        more = _ID.unpack(content)[0] & _MOST
        if not stream:
            self._window += more
        elif stream == self._stream:
            self._stream_window += more
        if self._is_busy and self._body:
            self._push()
        return True

    def _reset(self, flags: int, stream: int, content: bytes) -> bool:  # noqa: ARG002 - every frame is taken alike
        if stream == self._stream and self._is_busy:
            self.line.fail(Cause.RESET)
        return len(content) == 4

    def connection_lost(self) -> None:
        self._ended = True

    def eof_received(self) -> int:
        return Cause.TRUNCATED if self._status else Cause.RESET


def request_frames(
    method: str, path: str, endpoint: Endpoint, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Return one request as the wire takes it: its HEADERS frame, and the body that is to follow."""
    given = {name.lower(): value for name, value in (headers or {}).items()}
    pseudo = {
        ":method": method.upper(),
        ":scheme": "https" if endpoint.tls else "http",
        ":authority": given.get("host") or host_of(endpoint),
        ":path": quote_path(endpoint, path),
    }
    own = {name: value for name, value in given.items() if name not in _BARRED}
    if body or method.upper() in ("POST", "PUT", "PATCH"):
        own["content-length"] = str(len(body))
    checked_lines(f"{name}: {value}" for name, value in (pseudo | own).items())
    block = hpack.block((name.encode("latin-1"), value.encode("latin-1")) for name, value in (pseudo | own).items())
    if len(block) > _DEFAULT_FRAME:
        raise ValueError(f"its headers have {len(block)} bytes, more than the {_DEFAULT_FRAME} of one frame")
    return frame(_HEADERS, _END_HEADERS | (0 if body else _END_STREAM), 0, block) + body
