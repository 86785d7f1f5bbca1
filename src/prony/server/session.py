"""A browser's session: its cookie, and which requests may use it."""

from __future__ import annotations

import re

from starlette.types import Scope

from prony.app.login import SESSION_S
from prony.errors import AccessError
from prony.server.body import header

_PORT = re.compile(rb":(\d{1,5})$")
_READING = frozenset({"GET", "HEAD"})


def read_session(scope: Scope) -> bytes:
    """Return the secret that the browser keeps for this server, or nothing."""
    said = header(scope, b"cookie")
    if not said:
        return b""
    name = _cookie_name(scope)
    for part in said.split(b";"):
        key, _, value = part.strip().partition(b"=")
        if key == name:
            return value
    return b""


def session_cookie(scope: Scope, secret: str) -> str:
    """Return the header that has a browser keep a session; an empty secret ends it."""
    lasting = f"Max-Age={SESSION_S if secret else 0}"
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{_cookie_name(scope).decode()}={secret}; Path=/; HttpOnly; SameSite=Strict; {lasting}{secure}"


def check_same_origin(scope: Scope) -> None:
    """Refuse what a page of another origin sends in the name of a browser's session.

    SameSite keeps the cookie away from other sites. A page of another port of the same host is of the same site, and
    old browsers know neither: so the browser's own word on who asks is heard, and a change needs one.
    """
    site, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    if site:
        is_own = site in (b"same-origin", b"none")
    elif origin:
        is_own = is_own_origin(scope)
    else:
        is_own = scope["method"] in _READING
    if not is_own:
        raise AccessError(
            f"a page of {origin[:100].decode('latin-1') or 'another origin'!r} may not use this session",
            hint="open the server's own pages, or send a token; behind a proxy, forward the Host header "
            "and use --trusted-proxy",
            code="foreign_origin",
        )


def is_own_origin(scope: Scope) -> bool:
    """Is the page that asks one of this server's?"""
    own = f"{scope['scheme']}://".encode() + header(scope, b"host").lower()
    return header(scope, b"origin").lower() == own


def _cookie_name(scope: Scope) -> bytes:
    """Return a name of this server's own: browsers share cookies between all ports of a host."""
    found = _PORT.search(header(scope, b"host"))
    name = b"prony_session" + (b"_" + found[1] if found else b"")
    return b"__Host-" + name if scope["scheme"] == "https" else name
