"""Give a server its owner's token: the one of its home, or a fresh one."""

from __future__ import annotations

from prony.app.access import Access
from prony.store import tokens
from prony.store.home import Home
from prony.store.lock import hold_file_lock
from prony.store.owner_token import is_private, read_owner_token, write_owner_token


def ensure_owner_token(home: Home, access: Access) -> str:
    """Return the secret that the home's file and the database both know.

    It stays the same over restarts. One that was revoked is replaced, and so is one that others could have read.
    """
    with hold_file_lock(home.lock):
        secret = read_owner_token(home)
        if secret is not None and not is_private(home):
            access.drop_owner(secret)
            secret = None
        if secret is None or not access.keep_owner(secret):
            secret = tokens.new_secret()
            write_owner_token(home, secret)
            access.keep_owner(secret)
    return secret
