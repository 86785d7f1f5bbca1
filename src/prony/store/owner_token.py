"""The owner's token: a secret in a file of the home, which only the home's own user can read.

Whoever has it is the admin of the home's server. A server proves that it has it without telling it, so that nobody
sends it to a stranger who took over the server's port.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import stat
import sys
from pathlib import Path

from prony.errors import StoreError
from prony.store.home import Home

NAME = "owner-token"
# Headers: what a client asks a server, and what the server answers.
CHALLENGE, PROOF = "Prony-Challenge", "Prony-Proof"


def owner_token_file(home: Home) -> Path:
    return home.root / NAME


def read_owner_token(home: Home) -> str | None:
    """Return the secret, or None where no server has written one that this user can read."""
    try:
        return owner_token_file(home).read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, PermissionError, UnicodeDecodeError):
        return None
    except OSError as exc:
        hint = "check its permissions and its disk"
        raise StoreError(f"cannot read {owner_token_file(home)}: {exc.strerror}", hint=hint) from exc


def write_owner_token(home: Home, secret: str) -> None:
    """Replace the file in one step; nobody else can read it at any moment."""
    path = owner_token_file(home)
    fresh = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as exc:
        raise StoreError(
            f"cannot write {path}: {exc.strerror}", hint="check whether the disk is full or read-only"
        ) from exc


def is_private(home: Home) -> bool:
    """Is the file its owner's alone? What others could read is no secret any more."""
    if sys.platform == "win32":  # the home lies in the user's own folder, and modes mean nothing
        return True
    try:
        found = owner_token_file(home).stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def prove(secret: str, nonce: str, address: str, port: int) -> str:
    """Return what only one who has the secret can say to a nonce, over a connection to this address and port.

    The address is in it so that nobody can pass the question on to the server and its answer back as their own.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    said = f"prony owner\n{mapped or found}\n{port}\n{nonce}"
    return hmac.new(secret.encode(), said.encode(), "sha256").hexdigest()
