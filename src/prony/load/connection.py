"""Send a request over one raw socket connection and timestamp its reply.

Between a request and its reply nothing happens here but the send, the read, the clock and the wire's framing. The stamp
of a read is the kernel's where it has one, so that a loop that comes late does not make a reply late; how late it came
is kept too.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter_ns as clock
from typing import TYPE_CHECKING, Any, Protocol

from prony.load.poll import READ, WRITE, Poll
from prony.load.stamps import ROOM, ClockOffset, ask_kernel, unpack
from prony.load.wire import Wire
from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.tls import Secrets, TlsLayer

# What a line is doing.
CLOSED, CONNECTING, GREETING, IDLE, BUSY = range(5)
_READ_BYTES = 2**16
_READ_MOST = 2**20
_OK = int(Cause.OK)
# A reply that goes on for longer is a stream. The kernel tells only when the last bytes of a read came: where the first
# and more wait together to be read, the first seem late. So the rest of streams is read after what replies begin with.
_STREAM_NS = 2_000_000
_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK)
# No connection, and the server has no part in it: descriptors or ports of this machine are used up.
_OWN_FAULT = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS)
Address = tuple[int, Any]  # the family, and what `connect` wants


class ConnectionOwner(Protocol):
    """Who has the line: told of each thing that happens to it."""

    def connection_made(self, line: LoadConnection) -> None: ...
    def connection_refused(self, line: LoadConnection) -> None: ...
    def request_done(self, line: LoadConnection) -> None: ...
    def lost(self, line: LoadConnection) -> None: ...


class ConnectionPool:
    """What all lines of a client process share: where they go, the loop, the clocks' offset, the protocol."""

    def __init__(self, address: Address, poll: Poll, wire: type[Wire], options: Mapping[str, Any]) -> None:
        self.address = address
        self.poll = poll
        self.wire = wire
        self.options = options
        self.axis = ClockOffset()
        self.secrets: Secrets | None = None  # where TLS is spoken
        self.keeps = False
        self.opened = 0  # connections that stood, each one

    def with_wire(self, wire: type[Wire]) -> ConnectionPool:
        """Return the same place for lines of another protocol; their connections are counted apart."""
        other = ConnectionPool(self.address, self.poll, wire, self.options)
        other.axis = self.axis
        other.secrets = self.secrets
        return other


class LoadConnection:
    """One connection, one request at a time. `user` belongs to the owner."""

    __slots__ = (
        "_axis", "_finished", "_is_calm", "_most", "_out", "_owner", "_raw", "_receive", "_received", "_rest", "_send",
        "_site", "_sock", "_tls", "bytes_in", "cause", "due_ns", "end_ns", "first_ns", "index", "is_last", "keeps",
        "lag_ns", "pieces", "place", "reads", "request", "sent_ns", "served", "since_ns", "stamps", "state", "status",
        "user", "wire",
    )  # fmt: skip

    def __init__(self, site: ConnectionPool, owner: ConnectionOwner) -> None:
        self._site = site
        self._axis = site.axis
        self._owner = owner
        self._finished = owner.request_done
        self.keeps = site.keeps
        self._sock: socket.socket | None = None
        self._tls: TlsLayer | None = None
        self._send: Callable[[bytes], int] = _nothing
        self._raw: Callable[[bytes], int] = _nothing
        self._receive: Receive = _nothing
        self._received: Callable[[bytes], None] = _nothing
        self._out: Callable[[bytes], None] = _nothing
        self._rest = b""
        self._most = _READ_BYTES
        self.state = CLOSED
        self.user: Any = None
        self.place = -1
        self.wire: Wire | None = None
        self.is_last = self._is_calm = False
        self.served = False  # has this connection brought a reply already?
        self.since_ns = 0
        self.index = self.request = self.due_ns = self.sent_ns = 0
        self._clear()

    def _clear(self) -> None:
        self.first_ns = self.end_ns = self.status = self.cause = self.bytes_in = self.lag_ns = self.reads = 0
        self.pieces: list[bytes] = []
        self.stamps: list[int] = []

    def beside(self, wire: type[Wire], owner: ConnectionOwner) -> LoadConnection:
        """Return another line to the same place, which speaks otherwise and belongs to somebody else."""
        return LoadConnection(self._site.with_wire(wire), owner)

    # The hot path

    def begin(self, index: int, request: int, due_ns: int, content: bytes) -> None:
        """Send one request; the line must be idle. Without a due time it is due when it is sent."""
        self.index = index
        self.request = request
        self.first_ns = self.status = self.bytes_in = self.lag_ns = self.reads = 0
        if self.pieces:
            self.pieces, self.stamps = [], []
        self.state = BUSY
        self.sent_ns = now = clock()
        self.due_ns = due_ns or now
        self._out(content)

    def write(self, content: bytes) -> None:
        """Hand bytes to the kernel at once; what it does not take follows when it can."""
        try:
            count = self._send(content)
        except BlockingIOError:
            count = 0
        except OSError:
            self.fail(Cause.RESET)
            return
        if count < len(content):
            self._later(content[count:])

    def readable(self) -> None:
        most = self._most
        try:
            data, told, _, _ = self._receive(most, ROOM)
        except BlockingIOError:
            return
        except OSError:
            self._broken()
            return
        now = end = clock()
        if told:
            seconds, nanos = unpack(told[0][2])
            end = seconds * 1_000_000_000 + nanos - self._axis.offset_ns
            lag = now - end
            if lag > self.lag_ns:
                self.lag_ns = lag
            elif lag < 0:
                end = now
        size = len(data)
        if not size:
            self.eof(end)
            return
        self.end_ns = end
        if self.reads:
            self.reads += 1
            self.bytes_in += size
            if end - self.first_ns > _STREAM_NS and not (self._is_calm or self._rest) and self.state == BUSY:
                self._is_calm = True
                self._site.poll.calm(self._socket().fileno())
        else:
            self.first_ns = end
            self.reads = 1
            self.bytes_in = size
        if size == most < _READ_MOST:
            self._most = size * 4
        self._received(data)

    def keep(self, piece: bytes) -> None:
        """Keep a piece of the body for the digest, with the stamp of the read that brought it."""
        if self.keeps:
            self.stamps.append(self.end_ns)
            self.pieces.append(piece)

    def done(self, status: int, cause: int = _OK) -> None:
        """The reply is whole."""
        if self.state != BUSY:
            self.fail(Cause.MALFORMED)
            return
        self.status = status
        self.cause = cause
        if self._tls is not None:
            self._tls.keep_session()
        if self.is_last or self._rest:
            self.close()
        else:
            self.state = IDLE
            self.served = True
            if self._is_calm:
                self._is_calm = False
                self._site.poll.hurry(self._socket().fileno())
        self._finished(self)

    # Opening

    def open(self) -> None:
        """Begin to connect; the owner hears `opened` or `refused`, never from within this call."""
        family, address = self._site.address
        is_unix = family == getattr(socket, "AF_UNIX", None)
        self.state, self.is_last, self._rest, self._most = CONNECTING, False, b"", _READ_BYTES
        self.served = self._is_calm = False
        self.cause, self.since_ns = int(Cause.REFUSED), clock()
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as exc:
            self._refuse_soon(exc.errno or 0)
            return
        sock.setblocking(False)
        if not is_unix:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_kernel(sock)
        problem = sock.connect_ex(address)
        # Connecting to a unix socket never takes time: what says so is a queue that is full.
        if problem and (problem not in _UNDER_WAY or is_unix):
            sock.close()
            self._refuse_soon(problem)
            return
        self._sock, self._send, self._raw, self._receive = sock, sock.send, sock.send, _receiver(sock)
        self._site.poll.watch(sock.fileno(), self._check_connected, WRITE)

    def _refuse_soon(self, problem: int) -> None:
        if problem in _OWN_FAULT:
            self.cause = int(Cause.DROPPED)
        self._site.poll.at(self.since_ns, partial(self._handle_refused, self.since_ns))

    def _check_connected(self) -> None:
        sock = self._socket()
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._handle_refused(self.since_ns)
            return
        self._site.opened += 1
        self.state = GREETING
        self._clear()
        self.wire = self._site.wire(self, self._site.options)
        self._received = self.wire.data_received
        # A wire that only writes is passed by.
        self._out = self.write if self._site.wire.send is Wire.send else self.wire.send
        self._site.poll.rewatch(sock.fileno(), self.readable, READ)
        if self._site.secrets is None:
            self.wire.connection_made()
        else:
            self._tls = self._site.secrets.layer(self, self._site.wire)
            self._tls.begin()

    def wrap(self, received: Callable[[bytes], None], send: Callable[[bytes], int] | None = None) -> None:
        """From now on what was read, and what is sent, goes through these."""
        self._received = received
        self._send = send or self._send

    def ready(self) -> None:
        """The wire has greeted: requests may be sent."""
        self.state = IDLE
        self._owner.connection_made(self)

    def _handle_refused(self, since_ns: int) -> None:
        if self.state == CONNECTING and self.since_ns == since_ns:
            self.close()
            self._owner.connection_refused(self)

    # Ends

    def fail(self, cause: int) -> None:
        """Give up on what the line is doing, and on the connection with it; never undone."""
        before = self.state
        self.close()
        if before == BUSY:
            self.cause = int(cause)
            self.end_ns = clock()
            self._owner.request_done(self)
        elif before in (CONNECTING, GREETING):
            self.cause = int(cause if cause in (Cause.TIMEOUT, Cause.CUT) else Cause.REFUSED)
            self._owner.connection_refused(self)
        elif before == IDLE:
            self._owner.lost(self)

    def last(self) -> None:
        """The server closes after this reply: the connection is not used again."""
        self.is_last = True

    def close(self) -> None:
        """Close without a word; a request that runs is the owner's to record."""
        if self._sock is not None:
            self._site.poll.discard(self._sock)
        if self.wire is not None:
            self.wire.connection_lost()
        self.state = CLOSED
        # The wire knows the line and the line the wire: nothing collects circles while a load runs.
        self._sock = self.wire = self._tls = None
        self._rest = b""
        self._received = self._out = self._send = self._raw = self._receive = _nothing

    def _broken(self) -> None:
        self.fail(Cause.RESET)

    def eof(self, end_ns: int) -> None:
        """The other side says no more."""
        if self.state != BUSY or self.wire is None:
            self.fail(Cause.RESET)
            return
        cause = self.wire.eof_received()
        if cause == Cause.OK or (cause == Cause.STATUS and self.status):
            self.end_ns = end_ns
            self.is_last = True
            self.done(self.status, cause)
        else:
            self.fail(cause)

    # Short writes

    def push(self, content: bytes) -> None:
        """Hand bytes to the kernel behind those that still wait for it."""
        if not content or self._sock is None:
            return
        if self._rest:
            self._rest += content
            return
        try:
            count = self._raw(content)
        except BlockingIOError:
            count = 0
        except OSError:
            self.fail(Cause.RESET)
            return
        if count < len(content):
            self._later(content[count:])

    def _later(self, rest: bytes) -> None:
        waits = bool(self._rest)
        self._rest += rest
        if not waits:
            self._site.poll.rewatch(self._socket().fileno(), self._both, READ | WRITE)

    def _both(self) -> None:
        """Write what is left, and read: one event may mean either."""
        try:
            count = self._raw(self._rest)
        except BlockingIOError:
            count = 0
        except OSError:
            self._broken()
            return
        self._rest = self._rest[count:]
        if not self._rest:
            self._site.poll.rewatch(self._socket().fileno(), self.readable, READ)
        self.readable()

    def _socket(self) -> socket.socket:
        if self._sock is None:
            raise RuntimeError("a closed line has no socket")
        return self._sock


Receive = Callable[[int, int], tuple[bytes, list[tuple[int, int, bytes]], int, Any]]


def _receiver(sock: socket.socket) -> Receive:
    """Return how bytes are read: with what the kernel tells of them, where the system can."""
    if hasattr(sock, "recvmsg"):
        return sock.recvmsg
    return lambda size, _: (sock.recv(size), [], 0, None)


def _nothing(*_: Any) -> Any:
    return None
