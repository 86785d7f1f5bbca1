"""Find the owner's token of this home, where it is meant for the server that is asked."""

from __future__ import annotations

import secrets

from prony.client.connection import ApiConnection
from prony.client.wire import base_of
from prony.model.loopback import is_loopback_url
from prony.store.home import Home, running_server
from prony.store.owner_token import read_owner_token


def find_owner_token(url: str, home: Home, *, attempts: int = 4) -> str | None:
    """Return the secret for a server on this machine that proves to have it too; None for every other server.

    The server must be at an address of loopback, or at the one that the home's own server left there. Raises a
    TransportError where nobody answers.
    """
    base = base_of(url)
    if not is_loopback_url(base) and base != running_server(home):
        return None
    secret = read_owner_token(home)
    if secret is None:
        return None
    connection = ApiConnection(base, attempts=attempts)
    try:
        return secret if connection.knows(secret, nonce=secrets.token_urlsafe(32)) else None
    finally:
        connection.close()
