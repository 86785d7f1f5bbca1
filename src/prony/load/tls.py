"""TLS over a raw socket that keeps the kernel's receive timestamps.

All lines of a client process share one context and the last session, so that a connection that must be opened again
during the load costs less than the first.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from prony.load.connection import GREETING, LoadConnection
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

    def layer(self, line: LoadConnection, wire: type[Wire]) -> TlsLayer:
        return TlsLayer(line, wire, self)


class TlsLayer:
    """What wraps the bytes of one line, from its connection on; everything else is the line's."""

    __slots__ = ("_inward", "_is_shaken", "_line", "_outward", "_secrets", "_tls", "_wire")

    def __init__(self, line: LoadConnection, wire: type[Wire], secrets: Secrets) -> None:
        self._line = line
        self._wire = wire
        self._secrets = secrets
        self._is_shaken = False

    def begin(self) -> None:
        """Shake hands, or ask the server first whether it may be done."""
        asking = self._wire.tls_asking
        if not asking:
            self._secure()
            return
        self._line.wrap(self._start)
        self._line.write(asking)

    def _start(self, data: bytes) -> None:
        """Go on when the server grants TLS; more than its word may not come before TLS, for anybody could have put it
        there."""
        if data == self._wire.tls_granted:
            self._secure()
        else:
            self._line.fail(Cause.REFUSED)

    def _secure(self) -> None:
        self._inward, self._outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        shared = self._secrets
        self._tls = shared.context.wrap_bio(
            self._inward, self._outward, server_hostname=shared.host, session=shared.session
        )
        self._line.wrap(self._decrypt, self._encrypt)
        self._shake()

    def _shake(self) -> None:
        """Take the handshake as far as the bytes allow."""
        line = self._line
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError):
            self._flush()
            line.fail(Cause.REFUSED)
            return
        self._is_shaken = True
        self._flush()
        self._secrets.resumed += bool(self._tls.session_reused)
        wanted = self._wire.tls_protocols
        if wanted and self._tls.selected_alpn_protocol() not in wanted:
            line.fail(Cause.REFUSED)
            return
        if line.state == GREETING and line.wire is not None:
            line.wire.connection_made()

    def _decrypt(self, data: bytes) -> None:
        line = self._line
        self._inward.write(data)
        if not self._is_shaken:
            self._shake()
            if not self._is_shaken:
                return
        try:
            while line.wire is not None and (plain := self._tls.read(_PLAIN_BYTES)):
                line.wire.data_received(plain)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            line.eof(line.end_ns)
            return
        except ssl.SSLError:
            line.fail(Cause.MALFORMED)
            return
        if line.wire is not None and self._outward.pending:
            self._flush()

    def _encrypt(self, content: bytes) -> int:
        """Take the whole of it, as a socket that is never full."""
        self._tls.write(content)
        self._flush()
        return len(content)

    def _flush(self) -> None:
        self._line.push(self._outward.read())

    def keep_session(self) -> None:
        """Keep the session for the next connection; the tickets of TLS 1.3 come with the first reply."""
        if self._secrets.session is None:
            self._secrets.session = self._tls.session
