"""Load a Redis, or what speaks as one does: SET and GET commands, and messages that are published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from prony.model.base import Noun
from prony.plugins.drivers.redis.resp import ERROR_WORDS, encode_command
from prony.plugins.drivers.redis.session import RedisSession, greeting
from prony.plugins.drivers.request_mix import how_many, pick_numbers, shared_out
from prony.plugins.drivers.sockets import clean_up_on_failure, with_password
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Reply, Request, Wants

WIRE = "prony.plugins.drivers.redis.wire:RedisWire"
PUBSUB_WIRE = "prony.plugins.drivers.redis.pubsub_wire:SubscriberWire"
_CHANNEL = b"prony:channel"
_PREFIX = "prony:"
_DELETED_AT_ONCE = 500


class RedisOptions(Noun):
    """What is asked of a Redis."""

    operation: Literal["set", "get", "mixed", "publish", "pubsub"] = Field(
        default="mixed",
        description="what to send: SETs, GETs or both; publish: messages, timed until the server accepts them; "
        "pubsub: timed until a subscriber on another connection receives them",
    )
    get_share: float = Field(default=0.5, ge=0, le=1, description="for mixed: share of GET requests")
    pipeline: int = Field(default=1, ge=1, le=10_000, description="commands per request, sent and answered together")
    value_size: int = Field(
        default=256, ge=0, le=512 * 1024**2, description="size of a value or message, in random bytes"
    )
    key_size: int = Field(default=32, ge=12, le=65_536, description="size of a key in bytes, with its prefix")
    key_count: int = Field(
        default=10_000, ge=1, le=100_000_000, description="number of keys; for GETs, all are set beforehand"
    )
    keys: Literal["uniform", "zipf"] = Field(default="uniform", description="how keys are chosen")
    skew: float = Field(default=0.99, gt=0, le=5, description="for zipf: the exponent")
    protocol: Literal[2, 3] = Field(default=2, description="the version of the protocol")
    password_env: str = Field(default="", description="NAME of the environment variable with the password")
    distinct: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="number of different requests to prepare; they repeat after that",
    )

    @model_validator(mode="after")
    def _subscribes_in_version_2(self) -> Self:
        if self.operation == "pubsub" and self.protocol == 3:
            raise ValueError("pubsub needs version 2 of the protocol: remove protocol, or set it to 2")
        return self

    @property
    def has_keys(self) -> bool:
        return self.operation not in ("publish", "pubsub")


class RedisDriver:
    """Keys begin with `prony:` and are deleted at the end; nothing else in the database is touched."""

    name: ClassVar[str] = "redis"
    schemes: ClassVar[tuple[str, ...]] = ("redis", "rediss", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = RedisOptions

    def __init__(self) -> None:
        self._made: tuple[Endpoint, RedisOptions] | None = None

    def prepare(self, wants: Wants) -> Prepared:
        options: RedisOptions = wants.options
        endpoint = with_password(wants.endpoint, options.password_env)
        with clean_up_on_failure(self.finish), RedisSession(endpoint) as session:
            about = session.ask(encode_command(b"INFO", b"server"))
            if options.has_keys:
                self._made = (endpoint, options)
            if options.operation in ("get", "mixed"):
                session.ask_each(_filling(options, wants.seed))
        first = greeting(endpoint, resp3=options.protocol == 3)
        return Prepared(
            requests=_requests(wants, options),
            wire=PUBSUB_WIRE if options.operation == "pubsub" else WIRE,
            wire_options={
                "depth": options.pipeline,
                "greeting": b"".join(first).decode("latin-1"),
                "greetings": len(first),
                "value_size": options.value_size,
                "must_exist": True,
            },
            keeps=Keeps.NOTHING,
            notes={
                "server": _version(about),
                **_about(options),
                "pipeline": f"{options.pipeline} commands in one request",
            },
        )

    def digest(self, request: Request, reply: Reply) -> Digest:
        """Replies are not kept, so this is not asked; the wire has said all there is to say."""
        if not reply.status:
            return Digest(items=request.items)
        word = ERROR_WORDS[reply.status] if 0 < reply.status < len(ERROR_WORDS) else ERROR_WORDS[1]
        return Digest(cause=Cause.STATUS, detail=word)

    def finish(self) -> None:
        if self._made is None:
            return
        endpoint, options = self._made
        with RedisSession(endpoint) as session:
            for at in range(0, options.key_count, _DELETED_AT_ONCE):
                numbers = range(at, min(at + _DELETED_AT_ONCE, options.key_count))
                session.ask(encode_command(b"DEL", *(_key(number, options) for number in numbers)))
        self._made = None


def _about(options: RedisOptions) -> dict[str, str]:
    """Return what the requests are about, in words."""
    if options.operation == "publish":
        return {"messages": f"of {options.value_size} bytes to {_CHANNEL.decode()}, without subscribers"}
    if options.operation == "pubsub":
        of_each = "one channel per user, with one subscriber on its own connection"
        return {"messages": f"of {options.value_size} bytes to {of_each}"}
    return {"keys": f"{options.key_count} of {options.key_size} bytes, values of {options.value_size} bytes"}


def _key(number: int, options: RedisOptions) -> bytes:
    return f"{_PREFIX}{number:0{options.key_size - len(_PREFIX)}d}".encode()


class _Values:
    """Values of one size, each a different stretch of the same random bytes."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._spread = 4096
        self._bytes = rng.bytes(size + self._spread)

    def value(self, number: int) -> bytes:
        at = number * 37 % self._spread
        return self._bytes[at : at + self._size]


def _filling(options: RedisOptions, seed: int) -> Iterator[bytes]:
    values = _Values(options.value_size, np.random.default_rng([seed, 1]))
    for number in range(options.key_count):
        yield encode_command(b"SET", _key(number, options), values.value(number))


def _requests(wants: Wants, options: RedisOptions) -> list[Request]:
    each = options.pipeline * (options.key_size + 40 + (options.value_size if options.operation != "get" else 0))
    count = how_many(wants, options.distinct, bytes_each=each)
    rng = np.random.default_rng(wants.seed)
    values = _Values(options.value_size, np.random.default_rng([wants.seed, 1]))
    skew = options.skew if options.keys == "zipf" else 0.0
    numbers = pick_numbers(rng, options.key_count, count * options.pipeline, skew=skew).reshape(count, options.pipeline)
    shares = {"get": options.get_share, "set": 1 - options.get_share}
    operations = shared_out(rng, shares if options.operation == "mixed" else {options.operation: 1.0}, count)
    return [
        Request(_content(operation, row, options, values), operation=operation, items=options.pipeline)
        for operation, row in zip(operations, numbers.tolist(), strict=True)
    ]


def _content(operation: str, numbers: list[int], options: RedisOptions, values: _Values) -> bytes:
    if operation == "get":
        return b"".join([encode_command(b"GET", _key(number, options)) for number in numbers])
    if operation == "publish":
        return b"".join([encode_command(b"PUBLISH", _CHANNEL, values.value(number)) for number in numbers])
    if operation == "pubsub":  # its wire knows the channel, and adds the rest of the command
        return b"".join([b"$%d\r\n%b\r\n" % (options.value_size, values.value(number)) for number in numbers])
    return b"".join([encode_command(b"SET", _key(number, options), values.value(number)) for number in numbers])


def _version(about: bytes) -> str:
    for name in (b"valkey_version", b"redis_version"):
        found = re.search(name + rb":(\S+)", about)
        if found:
            return f"{name.decode().partition('_')[0]} {found.group(1).decode(errors='replace')}"
    return "unknown"
