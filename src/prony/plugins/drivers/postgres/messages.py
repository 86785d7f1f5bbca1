"""Encode PostgreSQL protocol 3.0 messages, log in, and read an error's SQLSTATE.

Statements take their parameters as text and give their rows as text, as pgbench's do.

One can log in without a password, with one in clear text, and by MD5 and SCRAM-SHA-256. Nothing here reads or writes: a
blocking session and a wire use it alike.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import stringprep
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from prony.errors import InputError

PROTOCOL = 196_608  # 3.0
SYNC = b"S\x00\x00\x00\x04"
TLS_ASKING = struct.pack(">II", 8, 80_877_103)
TLS_GRANTED = b"S"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def startup(settings: dict[str, str]) -> bytes:
    """Return the first message of a connection: user, database, and settings of the session."""
    words = b"".join(_text(word) for pair in settings.items() for word in pair)
    body = struct.pack(">I", PROTOCOL) + words + b"\x00"
    return struct.pack(">I", len(body) + 4) + body


def query(sql: str) -> bytes:
    return message(b"Q", _text(sql))


def parse_message(name: str, sql: str) -> bytes:
    """Return what prepares a statement; the server finds out the types of its parameters."""
    return message(b"P", _text(name) + _text(sql) + struct.pack(">H", 0))


def bind(name: str, values: Sequence[str]) -> bytes:
    """Return what gives a prepared statement its values."""
    parts = [b"\x00", _text(name), struct.pack(">HH", 0, len(values))]
    for value in values:
        encoded = value.encode()
        parts += [struct.pack(">I", len(encoded)), encoded]
    parts.append(struct.pack(">H", 0))
    return message(b"B", b"".join(parts))


def describe_portal() -> bytes:
    return message(b"D", b"P\x00")


def describe_statement(name: str) -> bytes:
    return message(b"D", b"S" + _text(name))


def execute() -> bytes:
    return message(b"E", b"\x00" + struct.pack(">I", 0))


def password(content: bytes) -> bytes:
    """Return any of the answers to a demand for a password."""
    return message(b"p", content)


def fields(body: bytes) -> Iterator[tuple[str, str]]:
    """Give the fields of an error or a notice: C is its SQLSTATE, M its text."""
    for part in body.split(b"\x00"):
        if part:
            yield chr(part[0]), part[1:].decode(errors="replace")


def sqlstate(body: bytes) -> str:
    return next((value for name, value in fields(body) if name == "C"), "XX000")


def state_number(state: str) -> int:
    """Return a SQLSTATE's class (its first two characters) as a number, for the status column: 40001 is 40.

    Classes that are no number go on from 100: A0 is 100 + 10 * 36."""
    first, second = (_DIGITS.find(letter) for letter in state[:2].upper().ljust(2, "0"))
    if first < 0 or second < 0:
        return 1
    return first * 10 + second if first < 10 and second < 10 else 100 + first * 36 + second


def join_round_trips(parts: Sequence[bytes]) -> bytes:
    """Return a request of several round trips: where each part ends, and then the parts."""
    at = 4 * len(parts)
    ends = []
    for part in parts:
        at += len(part)
        ends.append(at)
    return struct.pack(f">{len(parts)}I", *ends) + b"".join(parts)


def _text(word: str) -> bytes:
    return word.encode() + b"\x00"


password_message = password

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
            raise InputError(
                "PostgreSQL requires a password", hint="write it as postgresql://user:password@host:port/database"
            )
        return password_message(self._answer(kind, demand))

    def _answer(self, kind: int, demand: bytes) -> bytes:
        if kind == _CLEAR:
            return self._password.encode() + b"\x00"
        if kind == _MD5:
            return _md5_password(self._user, self._password, demand) + b"\x00"
        if kind == _SASL:
            return self._begin(demand)
        if kind == _SASL_CONTINUE:
            return self._prove(demand.decode())
        raise InputError(
            f"PostgreSQL requires an unsupported authentication method (number {kind})",
            hint="supported: trust, password, md5 and scram-sha-256",
        )

    def _begin(self, demand: bytes) -> bytes:
        if _MECHANISM not in demand.split(b"\x00"):
            raise InputError(
                "PostgreSQL does not offer SCRAM-SHA-256",
                hint=f"set scram-sha-256 in its pg_hba.conf; it offers {demand!r}",
            )
        # PostgreSQL takes the user's name from the first message of the connection and ignores this one.
        self._first = f"n=,r={self._nonce}"
        said = (_HEADER + self._first).encode()
        return _MECHANISM + b"\x00" + struct.pack(">I", len(said)) + said

    def _prove(self, challenge: str) -> bytes:
        told = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
        nonce, salt, rounds = told.get("r", ""), told.get("s", ""), int(told.get("i", "0") or 0)
        if not nonce.startswith(self._nonce) or rounds < 1:
            raise InputError(
                "PostgreSQL did not answer with a SCRAM challenge",
                hint="check that PostgreSQL 10 or newer listens at the endpoint",
            )
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
            raise InputError(
                "this PostgreSQL server could not prove that it knows the user's password",
                hint="check host and port: another server may answer there",
            )


def _md5_password(user: str, password: str, salt: bytes) -> bytes:
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
