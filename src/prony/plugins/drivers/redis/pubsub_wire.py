"""Time a published message from its sending to its arrival at its subscriber. Standard library only.

Imported by client processes. Every user has a channel of its own and two connections: the line, which subscribes and
whose reads the kernel stamps, and one beside it that publishes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prony.load.wire import Wire
from prony.plugins.drivers.redis.resp import NotRespError, Reader, encode_command
from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection

_CHANNEL = b"prony:"


class PublisherWire(Wire):
    """The connection that publishes: it greets, and after that only errors among its replies matter.

    Options: as of `SubscriberWire`."""

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._reader = Reader()
        self._greetings = int(options["greetings"])

    def connection_made(self) -> None:
        if self._greetings:
            self.line.write(str(self.options["greeting"]).encode("latin-1"))
        else:
            self.line.ready()

    def data_received(self, data: bytes) -> None:
        try:
            replies, error, _ = self._reader.feed(data)
        except NotRespError:
            self.line.fail(Cause.MALFORMED)
            return
        if error:
            self.line.status = error
            self.line.fail(Cause.STATUS)
        elif self._greetings:
            self._greetings -= replies
            if not self._greetings:
                self.line.ready()


class _Publishing:
    """Who has the connection that publishes: it passes on what happens to it."""

    def __init__(self, subscriber: SubscriberWire) -> None:
        self._subscriber = subscriber

    def connection_made(self, _: LoadConnection) -> None:
        self._subscriber.publishes()

    def connection_refused(self, line: LoadConnection) -> None:
        self._subscriber.publishes_no_more(line.status)

    def lost(self, line: LoadConnection) -> None:
        self._subscriber.publishes_no_more(line.status)

    def request_done(self, _: LoadConnection) -> None:
        """Nothing is ever asked on it, so nothing is finished."""


class SubscriberWire(Wire):
    """One request is `depth` messages; it is done when the last of them has come back on the channel, as it was sent.

    Options: `depth`; `value_size`; `greeting`, what a connection begins with (latin-1), and `greetings`, how many
    replies that has."""

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        super().__init__(line, options)
        self._channel = _CHANNEL + os.urandom(12).hex().encode()
        blob = b"$%d\r\n%b\r\n" % (len(self._channel), self._channel)
        self._publish = b"*3\r\n$7\r\nPUBLISH\r\n" + blob
        self._message = b"*3\r\n$7\r\nmessage\r\n" + blob
        depth, size = int(options["depth"]), int(options["value_size"])
        self._part = len(b"$%d\r\n" % size) + size + 2
        self._parts = range(0, depth * self._part, self._part)
        self._reader = Reader()
        self._left = int(options["greetings"]) + 1  # replies before requests may come: the subscription's is the last
        self._publisher: LoadConnection | None = None
        self._expected = self._come = b""

    def connection_made(self) -> None:
        greeting = str(self.options["greeting"]).encode("latin-1")
        self.line.write(greeting + encode_command(b"SUBSCRIBE", self._channel))

    def send(self, content: bytes) -> None:
        """Publish the messages of one request: `content` has each as a blob of the protocol."""
        if self._publisher is None:
            self.line.fail(Cause.RESET)
            return
        each = [content[at : at + self._part] for at in self._parts]
        self._expected, self._come = b"".join([self._message + one for one in each]), b""
        self._publisher.write(b"".join([self._publish + one for one in each]))

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._greet(data)
            return
        if data == self._expected and not self._come:
            self._expected = b""
            self.line.done(0)
            return
        self._come += data
        if len(self._come) < len(self._expected):
            return
        is_right, self._expected = self._come == self._expected and bool(self._expected), b""
        self.line.done(0, Cause.OK if is_right else Cause.CONTENT)

    def _greet(self, data: bytes) -> None:
        try:
            replies, error, _ = self._reader.feed(data)
        except NotRespError:
            self.line.fail(Cause.MALFORMED)
            return
        self._left -= replies
        if error:
            self.line.fail(Cause.STATUS)
        elif not self._left:
            self._publisher = self.line.beside(PublisherWire, _Publishing(self))
            self._publisher.open()

    def publishes(self) -> None:
        """The other connection stands too."""
        self.line.ready()

    def publishes_no_more(self, status: int) -> None:
        """The other connection is lost; `status` is the number of the server's error, 0 where it said nothing."""
        self.line.status = status
        self.line.fail(Cause.STATUS if status else Cause.RESET)

    def connection_lost(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def eof_received(self) -> int:
        return Cause.TRUNCATED if self._come else Cause.RESET
