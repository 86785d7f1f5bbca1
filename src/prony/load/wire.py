"""Wire protocol interface: how a connection recognises whole replies in its bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from prony.ports.driver import Cause

if TYPE_CHECKING:
    from prony.load.connection import LoadConnection


class Wire(ABC):
    """One line's protocol. Made once for each connection, in the client process.

    It frames replies and does nothing else: no decoding, no judging. The stamps are the line's: they are taken before
    `received` is called. Of TLS: `tls_protocols` are those that the server must choose from (ALPN); a protocol that
    begins without TLS sends `tls_asking` first, and the server grants it by `tls_granted`.
    """

    tls_protocols: ClassVar[tuple[str, ...]] = ()
    tls_asking: ClassVar[bytes] = b""
    tls_granted: ClassVar[bytes] = b""

    def __init__(self, line: LoadConnection, options: Mapping[str, Any]) -> None:
        self.line = line
        self.options = options

    def connection_made(self) -> None:
        """The connection stands (TLS too). A greeting may be written; `line.ready()` lets requests come."""
        self.line.ready()

    def send(self, content: bytes) -> None:
        """Write one request; a wire that keeps state begins its framing anew here."""
        self.line.write(content)

    @abstractmethod
    def data_received(self, data: bytes) -> None:
        """Frame the bytes of one read. Each whole reply is told by `line.done(status, cause)`."""

    def connection_lost(self) -> None:  # noqa: B027 - most wires are referred to by nothing
        """The line is closed for good. What refers back to the wire is let go here: nothing collects circles while a
        load runs."""

    def eof_received(self) -> int:
        """The other side closed within a reply: which cause is it? OK where the reply ends in just this way."""
        return Cause.TRUNCATED if self.line.reads else Cause.RESET
