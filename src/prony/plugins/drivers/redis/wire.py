"""Redis wire: recognise whole pipelines of replies. Imported by client processes: the standard library only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from prony.load.wire import Wire
from prony.plugins.drivers.redis.resp import NotRespError, Reader
from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection


class RedisWire(Wire):
    """One request is `depth` commands; it is done when the last of so many replies is whole.

    Options: `depth`; `greeting`, what is sent first (latin-1), and `greetings`, how many replies it has; `value_size`,
    where every value has the same size; `must_exist`: a nil is no success."""

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._depth = int(options["depth"])
        self._greeting = str(options.get("greeting", "")).encode("latin-1")
        self._greetings = int(options.get("greetings", 0))
        self._must_exist = bool(options.get("must_exist", False))
        self._set_reply = b"+OK\r\n" * self._depth
        self._is_values = _values(self._depth, int(options.get("value_size", -1)))
        self._reader = Reader()
        self._left = 0
        self._fresh = False
        self._error = 0
        self._nils = 0

    def connection_made(self) -> None:
        self._reader.reset()
        self._left, self._fresh, self._error, self._nils = self._greetings, False, 0, 0
        if self._greetings:
            self.line.write(self._greeting)
        else:
            self.line.ready()

    def send(self, content: bytes) -> None:
        self._left, self._fresh, self._error, self._nils = self._depth, True, 0, 0
        self._greetings = 0
        self.line.write(content)

    def data_received(self, data: bytes) -> None:
        if self._fresh and (data == self._set_reply or self._is_values(data)):
            self._left, self._fresh = 0, False
            self.line.done(0)
            return
        self._fresh = False
        try:
            replies, error, nils = self._reader.feed(data)
        except NotRespError:
            self.line.fail(Cause.MALFORMED)
            return
        self._error = self._error or error
        self._nils += nils
        self._left -= replies
        if self._left < 0:
            self.line.fail(Cause.MALFORMED)
        elif replies and not self._left:
            self._whole()

    def _whole(self) -> None:
        if self._greetings:
            self._greetings = 0
            if self._error:
                self.line.fail(Cause.STATUS)
            else:
                self.line.ready()
            return
        if self._error:
            self.line.done(self._error, Cause.STATUS)
        elif self._nils and self._must_exist:
            self.line.done(0, Cause.CONTENT)
        else:
            self.line.done(0)

    def eof_received(self) -> int:
        has_begun = self._left < self._depth or not self._reader.is_between
        return Cause.TRUNCATED if has_begun else Cause.RESET


def _values(depth: int, size: int) -> Callable[[bytes], object]:
    """Return what knows at a glance a whole reply to GETs, where all values have one size."""
    if size < 0:
        return lambda _: False
    return re.compile(rb"(?:\$%d\r\n.{%d}\r\n){%d}" % (size, size, depth), re.DOTALL).fullmatch
