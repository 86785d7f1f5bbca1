"""TLS on a raw socket: what the kernel read in, what the server said out, with the kernel's stamps kept.

All lines of a client process share one context and the last session, so that a connection that must be opened again
during the load costs less than the first.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

from prony.load.connection import GREETING, Connection, ConnectionPool, Owner
from prony.load.wire import Wire
from prony.ports.driver import Cause, Endpoint

_PLAIN_BYTES = 2**16


def context_of(endpoint: Endpoint, protocols: Sequence[str] = ()) -> ssl.SSLContext:
    """Return how TLS is spoken to an endpoint; `protocols` are offered by ALPN."""
    context = ssl.create_default_context(cafile=endpoint.ca or None)
    context.check_hostname = endpoint.verify and endpoint.check_name
    if not endpoint.verify:
        context.verify_mode = ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


class Secrets:
    """What TLS lines share."""

    def __init__(self, endpoint: Endpoint, protocols: Sequence[str] = ()) -> None:
        self.host = endpoint.host
        self.session: ssl.SSLSession | None = None
        self.resumed = 0
        self.context = context_of(endpoint, protocols)

    def line(self, site: ConnectionPool, owner: Owner) -> TlsConnection:
        return TlsConnection(site, owner, self)


class TlsConnection(Connection):
    """A line whose bytes are wrapped; everything else is a line's."""

    __slots__ = ("_inward", "_outward", "_secrets", "_shaken", "_tls")

    def __init__(self, site: ConnectionPool, owner: Owner, secrets: Secrets) -> None:
        super().__init__(site, owner)
        self._secrets = secrets

    def beside(self, wire: type[Wire], owner: Owner) -> TlsConnection:
        return TlsConnection(self._site.with_wire(wire), owner, self._secrets)

    def _stands(self) -> None:
        asking = self._site.wire.tls_asking
        if not asking:
            self._secure()
            return
        self._received = self._start_tls
        self.write(asking)

    def _start_tls(self, data: bytes) -> None:
        """Go on when the server grants TLS; more than its word may not come before TLS, for anybody could have put it
        there."""
        if data == self._site.wire.tls_granted:
            self._secure()
        else:
            self.fail(Cause.REFUSED)

    def _secure(self) -> None:
        self._inward, self._outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        shared = self._secrets
        self._tls = shared.context.wrap_bio(
            self._inward, self._outward, server_hostname=shared.host, session=shared.session
        )
        self._send = self._encrypt
        self._received, self._shaken = self._decrypt, False
        self._shake()

    def _shake(self) -> None:
        """Take the handshake as far as the bytes allow."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError):
            self._flush()
            self.fail(Cause.REFUSED)
            return
        self._shaken = True
        self._flush()
        shared = self._secrets
        shared.resumed += bool(self._tls.session_reused)
        wanted = self._site.wire.tls_protocols
        if wanted and self._tls.selected_alpn_protocol() not in wanted:
            self.fail(Cause.REFUSED)
            return
        if self.state == GREETING and self.wire is not None:
            self.wire.connection_made()

    def _decrypt(self, data: bytes) -> None:
        self._inward.write(data)
        if not self._shaken:
            self._shake()
            if not self._shaken:
                return
        try:
            while self.wire is not None and (plain := self._tls.read(_PLAIN_BYTES)):
                self.wire.data_received(plain)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._eof(self.end_ns)
            return
        except ssl.SSLError:
            self.fail(Cause.MALFORMED)
            return
        if self.wire is not None and self._outward.pending:
            self._flush()

    def _encrypt(self, content: Any) -> int:
        """Take the whole of it, as a socket that is never full."""
        self._tls.write(content)
        self._flush()
        return len(content)

    def _flush(self) -> None:
        wrapped = self._outward.read()
        if not wrapped or self._sock is None:
            return
        if self._rest:
            self._rest += wrapped
            return
        try:
            count = self._raw(wrapped)
        except BlockingIOError:
            count = 0
        except OSError:
            self.fail(Cause.RESET)
            return
        if count < len(wrapped):
            self._later(wrapped[count:])

    def done(self, status: int, cause: int = 0) -> None:
        # The tickets of TLS 1.3 come with the first reply.
        if self._secrets.session is None and self.wire is not None:
            self._secrets.session = self._tls.session
        super().done(status, cause)

    def close(self) -> None:
        super().close()
        self._inward = self._outward = self._tls = None  # type: ignore[assignment]
