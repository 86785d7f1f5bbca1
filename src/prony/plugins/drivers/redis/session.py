"""Blocking Redis session for what the driver does before and after a load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from prony.errors import InputError, SutError
from prony.plugins.drivers.redis.resp import NotRespError, Reader, encode_command
from prony.plugins.drivers.sockets import clean_up_on_failure, connect, receive, show_endpoint
from prony.ports.driver import Endpoint

_AT_ONCE = 500


def greeting(endpoint: Endpoint, *, resp3: bool) -> Sequence[bytes]:
    """Return the commands that a connection begins with: who we are, which protocol, which database."""
    who = [word.encode() for word in (endpoint.user, endpoint.password) if word]
    commands: list[bytes] = []
    if resp3:
        login = [b"AUTH", who[0] if endpoint.user else b"default", who[-1]] if endpoint.password else []
        commands.append(encode_command(b"HELLO", b"3", *login))
    elif endpoint.password:
        commands.append(encode_command(b"AUTH", *who))
    if endpoint.database not in ("", "0"):
        commands.append(encode_command(b"SELECT", endpoint.database.encode()))
    return commands


class RedisSession:
    """One blocking connection; leaving the block closes it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket = connect(endpoint)
        self._reader = Reader()
        with clean_up_on_failure(self._socket.close):
            for one in greeting(endpoint, resp3=False):
                self._greet(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, content: bytes, replies: int = 1) -> bytes:
        """Send commands and return the bytes of so many replies; a SutError where one of them is an error."""
        self._socket.sendall(content)
        parts: list[bytes] = []
        left = replies
        while left > 0:
            data = receive(self._socket, self._endpoint)
            parts.append(data)
            left -= self._count(data, parts)
        return b"".join(parts)

    def ask_each(self, commands: Iterable[bytes]) -> None:
        """Send commands, some hundred at once, and see that none is refused."""
        waiting: list[bytes] = []
        for one in commands:
            waiting.append(one)
            if len(waiting) == _AT_ONCE:
                self.ask(b"".join(waiting), len(waiting))
                waiting.clear()
        if waiting:
            self.ask(b"".join(waiting), len(waiting))

    def _greet(self, content: bytes) -> None:
        try:
            self.ask(content)
        except SutError as exc:
            raise InputError(exc.message, hint="redis://user:password@host:port/database") from exc

    def _count(self, data: bytes, parts: list[bytes]) -> int:
        try:
            seen = self._reader.feed(data)
        except NotRespError as exc:
            raise SutError(
                f"{show_endpoint(self._endpoint)} does not answer like Redis: {exc}",
                hint="check the host and the port of the endpoint",
            ) from exc
        if seen.error:
            line = next((line for line in b"".join(parts).split(b"\r\n") if line.startswith(b"-")), b"-an error")
            raise SutError(
                f"the Redis at {show_endpoint(self._endpoint)} says: {line[1:300].decode(errors='replace')}",
                hint="see its log; redis-cli shows whether it accepts the command",
            )
        return seen.replies
