"""Log in to PostgreSQL: no password, clear text, MD5 and SCRAM-SHA-256.

Nothing here reads or writes: a blocking session and a wire use it alike.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import stringprep
import struct
import unicodedata
from functools import lru_cache

from prony.errors import InputError
from prony.plugins.drivers.postgres.messages import password as password_message

_OK, _CLEAR, _MD5, _SASL, _SASL_CONTINUE, _SASL_FINAL = 0, 3, 5, 10, 11, 12
_MECHANISM = b"SCRAM-SHA-256"
_HEADER = "n,,"  # no channel binding


class Login:
    """The talk of one connection, from the first demand to the last."""

    def __init__(self, user: str, password: str, *, nonce: str | None = None) -> None:
        self._user = user
        self._password = password
        self._nonce = nonce or secrets.token_urlsafe(18)
        self._proof_of_server = b""
        self._first = ""

    def answer(self, body: bytes) -> bytes:
        """Return what to send for one authentication message; nothing where no answer is expected."""
        (kind,) = struct.unpack_from(">I", body)
        demand = body[4:]
        if kind == _OK:
            return b""
        if kind == _SASL_FINAL:
            self._check(demand)
            return b""
        if not self._password:
            raise InputError("PostgreSQL asks for a password", hint="postgresql://user:password@host:port/database")
        return password_message(self._answer(kind, demand))

    def _answer(self, kind: int, demand: bytes) -> bytes:
        if kind == _CLEAR:
            return self._password.encode() + b"\x00"
        if kind == _MD5:
            return md5_password(self._user, self._password, demand) + b"\x00"
        if kind == _SASL:
            return self._begin(demand)
        if kind == _SASL_CONTINUE:
            return self._prove(demand.decode())
        raise InputError(
            f"PostgreSQL asks for a way to log in that is not known here (number {kind})",
            hint="trust, password, md5 and scram-sha-256 are",
        )

    def _begin(self, demand: bytes) -> bytes:
        if _MECHANISM not in demand.split(b"\x00"):
            raise InputError("PostgreSQL offers no SCRAM-SHA-256", hint=f"it offers {demand!r}")
        # PostgreSQL takes the user's name from the first message of the connection and ignores this one.
        self._first = f"n=,r={self._nonce}"
        said = (_HEADER + self._first).encode()
        return _MECHANISM + b"\x00" + struct.pack(">I", len(said)) + said

    def _prove(self, challenge: str) -> bytes:
        told = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
        nonce, salt, rounds = told.get("r", ""), told.get("s", ""), int(told.get("i", "0") or 0)
        if not nonce.startswith(self._nonce) or rounds < 1:
            raise InputError("what PostgreSQL answered is none of SCRAM's challenges")
        salted = _salt_password(_prepare_password(self._password), base64.b64decode(salt), rounds)
        last = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        talk = f"{self._first},{challenge},{last}".encode()
        key = _mac(salted, b"Client Key")
        sign = _mac(hashlib.sha256(key).digest(), talk)
        proof = bytes(one ^ other for one, other in zip(key, sign, strict=True))
        self._proof_of_server = _mac(_mac(salted, b"Server Key"), talk)
        return f"{last},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, demand: bytes) -> None:
        said = demand.partition(b"v=")[2].split(b",", 1)[0]
        if not hmac.compare_digest(said, base64.b64encode(self._proof_of_server)):
            raise InputError("the server cannot prove that it knows the password")


def md5_password(user: str, password: str, salt: bytes) -> bytes:
    inner = hashlib.md5((password + user).encode(), usedforsecurity=False).hexdigest()
    return b"md5" + hashlib.md5(inner.encode() + salt[:4], usedforsecurity=False).hexdigest().encode()


@lru_cache(maxsize=8)
def _salt_password(password: bytes, salt: bytes, rounds: int) -> bytes:
    """Return the slow part, which all connections of a process share: the server's salt is the same for all."""
    return hashlib.pbkdf2_hmac("sha256", password, salt, rounds)


def _mac(key: bytes, said: bytes) -> bytes:
    return hmac.new(key, said, hashlib.sha256).digest()


def _prepare_password(password: str) -> bytes:
    """Return the password as SASLprep has it; plain ASCII stays what it is."""
    if password.isascii():
        return password.encode()
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter for letter in password if not stringprep.in_table_b1(letter)
    )
    return unicodedata.normalize("NFKC", mapped).encode()
