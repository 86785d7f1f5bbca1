"""Blocking PostgreSQL session for what the driver does before and after a load."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from prony.errors import InputError, SutError
from prony.plugins.drivers.postgres import messages
from prony.plugins.drivers.postgres.messages import Login
from prony.plugins.drivers.sockets import clean_up_on_failure, connect, receive, show_endpoint
from prony.ports.driver import Endpoint

Row = tuple[str | None, ...]
_WRONG_LOGIN = ("28", "3D")  # classes: who may come in, and which databases there are
_FATAL = ("FATAL", "PANIC")  # the server closes the connection after these


class _RefusedError(SutError):
    """The server does not let us in."""


class PostgresSession:
    """One blocking connection; leaving the block closes it."""

    def __init__(self, endpoint: Endpoint, settings: dict[str, str]) -> None:
        self._endpoint = endpoint
        self._socket = connect(endpoint, timeout_s=600.0, asking=(messages.TLS_ASKING, messages.TLS_GRANTED))
        self._waiting = bytearray()
        self.facts: dict[str, str] = {}
        with clean_up_on_failure(self._socket.close):
            self._log_in(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def run(self, sql: str) -> list[Row]:
        """Run statements; return the rows of the last one that has some. A SutError says what the server said."""
        return [_row(body) for kind, body in self._talk(messages.query(sql)) if kind == b"D"]

    def check(self, statements: Sequence[str]) -> None:
        """Have statements prepared and forgotten again: an InputError says what is wrong with which."""
        for sql in statements:
            try:
                list(self._talk(messages.parse_message("", sql) + messages.describe_statement("") + messages.SYNC))
            except SutError as exc:
                raise InputError(f"{exc.message}, in `{sql}`", hint="try it in psql first") from exc

    def _log_in(self, settings: dict[str, str]) -> None:
        login = Login(settings["user"], self._endpoint.password)
        try:
            for kind, body in self._talk(messages.startup(settings)):
                if kind == b"R":
                    self._socket.sendall(login.answer(body))
                elif kind == b"S":
                    name, value = body.split(b"\x00")[:2]
                    self.facts[name.decode()] = value.decode()
        except _RefusedError as exc:
            raise InputError(exc.message, hint="postgresql://user:password@host:port/database") from exc

    def _talk(self, content: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Send, and give the messages that come until the server is ready for more; then raise the first error."""
        self._socket.sendall(content)
        problem: SutError | None = None
        while True:
            kind, body = self._message()
            if kind == b"E":
                told = dict(messages.fields(body))
                problem = problem or self._problem(told)
                if told.get("S") in _FATAL or told.get("V") in _FATAL:
                    raise problem
            elif kind == b"Z":
                break
            else:
                yield kind, body
        if problem is not None:
            raise problem

    def _problem(self, told: dict[str, str]) -> SutError:
        state = told.get("C", "")
        text = f"PostgreSQL at {show_endpoint(self._endpoint)} says {state}: {told.get('M', 'an error')}"
        if state[:2] in _WRONG_LOGIN:
            return _RefusedError(text)
        return SutError(text, hint="see the log of PostgreSQL; psql shows whether it accepts the statement")

    def _message(self) -> tuple[bytes, bytes]:
        head = self._take(5)
        (size,) = struct.unpack_from(">I", head, 1)
        if size < 4 or size > 1 << 30:
            raise SutError(
                f"{show_endpoint(self._endpoint)} does not answer like PostgreSQL",
                hint="check the host and the port of the endpoint",
            )
        return head[:1], self._take(size - 4)

    def _take(self, size: int) -> bytes:
        while len(self._waiting) < size:
            self._waiting += receive(self._socket, self._endpoint)
        taken = bytes(self._waiting[:size])
        del self._waiting[:size]
        return taken


def _row(body: bytes) -> Row:
    (count,) = struct.unpack_from(">H", body)
    at, values = 2, []
    for _ in range(count):
        (size,) = struct.unpack_from(">i", body, at)
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode(errors="replace"))
        at += max(size, 0)
    return tuple(values)
