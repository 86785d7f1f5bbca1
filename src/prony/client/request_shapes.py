"""Send the few kinds of requests that a server's API has, and resolve what a person writes for an id.

A request asks for a noun, creates one, sends one, does something or fetches a file. An id may be written whole, by its
beginning, or as a name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from prony.client import wire
from prony.client.connection import ApiCall, ApiConnection, Asked
from prony.errors import InputError, NotFoundError
from prony.model.base import Noun

N = TypeVar("N", bound=Noun)


class ApiRequests:
    """Makes requests of nouns, over one connection; each part of the client has one."""

    def __init__(self, connection: ApiConnection) -> None:
        self.connection = connection

    def get(self, noun: type[N], *parts: str, **query: Asked) -> N:
        """Ask for a noun; safe to repeat, so it is repeated where the connection breaks."""
        return self.connection.read(noun, ApiCall("GET", parts, query, is_safe=True))

    def create(self, noun: type[N], *parts: str, body: Noun | None = None, key: str | None = None) -> N:
        """Make something once, however often it must be asked for: the server knows the key again."""
        named = wire.headers(None, key=key or uuid.uuid4().hex)
        call = ApiCall("POST", parts, headers={**named, **_type(body)}, content=_content(body), is_safe=True)
        return self.connection.read(noun, call)

    def send(self, noun: type[N], method: str, *parts: str, body: Noun | None = None, wait_s: float = 0.0) -> N:
        """Send a noun, or nothing, and read the noun that is the answer; it is not repeated."""
        call = ApiCall(method, parts, headers=_type(body), content=_content(body), wait_s=wait_s)
        return self.connection.read(noun, call)

    def do(self, method: str, *parts: str, **query: Asked) -> None:
        """Ask for something that has no answer but that it was done."""
        self.connection.send(ApiCall(method, parts, query))

    def fetch(self, to: Path, *parts: str, **query: Asked) -> Path:
        """Write the body of an answer to the file `to`, whole or not at all."""
        return self.connection.download(ApiCall("GET", parts, query, is_safe=True), to)


def _content(body: Noun | None) -> bytes | None:
    return None if body is None else body.model_dump_json().encode()


def _type(body: Noun | None) -> Mapping[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}


_MOST_SHOWN = 8


def exists(get: Callable[[str], object], identity: str) -> bool:
    """Whether the server has something of exactly this id."""
    try:
        get(identity)
    except NotFoundError:
        return False
    return True


def only_match(matches: Sequence[str], text: str, noun: str, lister: str) -> str:
    """Return the one id that matches what a person wrote.

    Args:
        matches: The ids that the text may stand for.
        text: What the person wrote.
        noun: What is looked for, as the message calls it.
        lister: The command that lists what is there.

    Raises:
        NotFoundError: Nothing matches.
        InputError: Several match, with the code `ambiguous`.
    """
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise NotFoundError(f"no {noun} {text!r}", hint=f"`{lister}` shows what is there")
    shown = ", ".join(matches[:_MOST_SHOWN]) + (", ..." if len(matches) > _MOST_SHOWN else "")
    hint = "write more of it" if len(set(matches)) > 1 else ""
    raise InputError(f"{text!r} may be any of {len(matches)} {noun}s: {shown}", hint=hint, code="ambiguous")
