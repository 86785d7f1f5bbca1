"""PostgreSQL wire: log in, prepare statements and recognise whole answers.

Imported by client processes: the standard library only.

A connection logs in, prepares its statements once, and then answers requests, each of one or several round trips.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar

from prony.errors import InputError
from prony.load.wire import Wire
from prony.plugins.drivers.postgres import messages
from prony.plugins.drivers.postgres.messages import Login
from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection

_HEAD = struct.Struct(">BI").unpack_from
_READY, _ERROR, _COMPLETE, _DEMAND, _ROW = b"ZECRD"
_TOLD = frozenset((_READY, _ERROR, _COMPLETE, _DEMAND))
_KNOWN = frozenset(b"123ACDEGHIKNRSTVWZcdnstv")
_LONGEST = 1 << 30
_MOST_KNOWN, _LONGEST_KNOWN = 64, 128
_IDLE = ord("I")
_ROLLBACK = messages.query("ROLLBACK")


class _Phase(Enum):
    LOGIN = auto()
    PREPARING = auto()
    SERVING = auto()
    ROLLING_BACK = auto()


class PostgresWire(Wire):
    """Options: `settings` of the session, `user` and `database` among them; `password`; `statements` to prepare, named
    s0, s1, ...; `steps`: how many round trips a request has; `must_match`: a statement that finds no row is no success.
    """

    tls_asking: ClassVar[bytes] = messages.TLS_ASKING
    tls_granted: ClassVar[bytes] = messages.TLS_GRANTED

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._settings: dict[str, str] = dict(options["settings"])
        self._password = str(options.get("password", ""))
        self._statements: list[str] = list(options.get("statements", ()))
        self._steps = int(options.get("steps", 1))
        self._ends = struct.Struct(f">{self._steps}I")
        self._must_match = bool(options.get("must_match", False))
        self._phase = _Phase.LOGIN
        self._login = Login(self._settings["user"], self._password)
        self._known: dict[bytes, int] = {}
        self._rest = b""  # of a message that is not whole
        self._skip = 0  # of a row that is not whole
        self._clean(b"")

    def _clean(self, content: bytes) -> None:
        self._content, self._at = content, 0
        self._left: tuple[int, ...] = ()
        self._state = 0
        self._missed = False
        self._touched = False

    def connection_made(self) -> None:
        self._phase, self._rest, self._skip = _Phase.LOGIN, b"", 0
        self._clean(b"")
        self._login = Login(self._settings["user"], self._password)
        self.line.write(messages.startup(self._settings))

    def send(self, content: bytes) -> None:
        self._clean(content)
        if self._steps == 1:
            self.line.write(content)
            return
        self._left = self._ends.unpack_from(content)
        self._at = self._ends.size
        self._step()

    def _step(self) -> None:
        end, self._left = self._left[0], self._left[1:]
        content, self._at = self._content[self._at : end], end
        self.line.write(content)

    def data_received(self, data: bytes) -> None:
        self._touched = True
        is_whole = self._phase is _Phase.SERVING and not self._skip and not self._rest
        if is_whole and data in self._known:
            # Servers repeat themselves: but for rows, an answer is the same bytes as the last one.
            self._note_ready(self._known[data])
            return
        at = 0
        if self._skip:
            at = min(self._skip, len(data))
            self._skip -= at
        elif self._rest:
            data, self._rest = self._rest + data, b""
        self._walk(data, at, is_whole=is_whole)

    def _walk(self, data: bytes, at: int, *, is_whole: bool) -> None:
        size, head = len(data), _HEAD
        while size - at >= 5:
            kind, length = head(data, at)
            end = at + 1 + length
            if kind == _ROW and 4 <= length < _LONGEST:
                at = end
                continue
            if kind not in _KNOWN or not 4 <= length < _LONGEST:
                self.line.fail(Cause.MALFORMED)
                return
            if end > size:
                break
            if end == size and is_whole and kind == _READY:
                self._learn(data)
            if kind in _TOLD and not self._take_message(kind, data[at + 5 : end]):
                return
            at = end
        # Of a row only how much of it is still to come is of interest; of other messages the beginning is kept.
        if at > size:
            self._skip = at - size
        elif at < size:
            self._rest = data[at:]

    def _learn(self, data: bytes) -> None:
        """Remember an answer that is good, short, and came in one piece."""
        is_good = not (self._state or self._missed)
        if is_good and len(data) <= _LONGEST_KNOWN and len(self._known) < _MOST_KNOWN:
            self._known[data] = data[-1]

    def _take_message(self, kind: int, body: bytes) -> bool:
        """Take a message that changes something; False where the line is lost."""
        if kind == _COMPLETE:
            if self._must_match and body.endswith(b" 0\x00"):
                self._missed = True
        elif kind == _READY:
            return self._ready(body[0] if body else 0)
        elif kind == _ERROR:
            return self._note_error(body)
        elif self._phase is _Phase.LOGIN:
            return self._authenticate(body)
        return True

    def _authenticate(self, body: bytes) -> bool:
        try:
            said = self._login.answer(body)
        except InputError:
            self.line.fail(Cause.REFUSED)
            return False
        except (ValueError, struct.error):
            self.line.fail(Cause.MALFORMED)
            return False
        if said:
            self.line.write(said)
        return True

    def _note_error(self, body: bytes) -> bool:
        self._state = self._state or messages.state_number(messages.sqlstate(body))
        if self._phase is not _Phase.LOGIN:
            return True
        self.line.fail(Cause.REFUSED)
        return False

    def _ready(self, status: int) -> bool:
        if self._phase is _Phase.SERVING:
            self._note_ready(status)
        elif self._phase is _Phase.ROLLING_BACK:
            self._phase = _Phase.SERVING
            self._done()
        elif self._phase is _Phase.LOGIN and self._statements:
            self._phase = _Phase.PREPARING
            self.line.write(_preparing(self._statements))
        elif self._state:
            self.line.fail(Cause.STATUS)
            return False
        else:
            self._phase = _Phase.SERVING
            self.line.ready()
        return True

    def _note_ready(self, status: int) -> None:
        if self._left and not self._state:
            self._step()
        elif status != _IDLE:
            # The next request must find no transaction open, least of all a failed one.
            self._missed = True
            self._phase = _Phase.ROLLING_BACK
            self.line.write(_ROLLBACK)
        else:
            self._done()

    def _done(self) -> None:
        if self._state:
            self.line.done(self._state, Cause.STATUS)
        elif self._missed:
            self.line.done(0, Cause.CONTENT)
        else:
            self.line.done(0)

    def eof_received(self) -> int:
        if self._state:
            self.line.status = self._state
            return Cause.STATUS
        return Cause.TRUNCATED if self._touched else Cause.RESET


def _preparing(statements: list[str]) -> bytes:
    parts = [messages.parse_message(f"s{number}", sql) for number, sql in enumerate(statements)]
    return b"".join(parts) + messages.SYNC
