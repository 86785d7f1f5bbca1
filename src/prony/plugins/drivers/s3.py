"""Driver for S3 object stores: put and get objects."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from prony.errors import InputError
from prony.load.http import request_bytes
from prony.model.base import Noun
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.request_mix import how_many, shared_out
from prony.plugins.drivers.sockets import clean_up_on_failure
from prony.plugins.s3_sign import Signer
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Reply, Request, Wants

WIRE = "prony.load.http:HttpWire"
_THREADS = 8


class S3Options(Noun):
    """What is asked of an S3 store."""

    operation: Literal["put", "get", "mixed"] = Field(default="mixed", description="what to do with objects")
    get_share: float = Field(default=0.5, ge=0, le=1, description="for mixed: share of GET requests")
    object_size: int = Field(default=1024**2, ge=0, le=256 * 1024**2, description="size of an object, in random bytes")
    objects: int = Field(
        default=100, ge=1, le=1_000_000, description="number of objects; for GETs, all are put beforehand"
    )
    bucket: str = Field(
        default="prony",
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
        description="the bucket; a missing one is created, and removed at the end",
    )
    region: str = Field(default="us-east-1", min_length=1, description="region for the signature")
    access_key_env: str = Field(
        default="AWS_ACCESS_KEY_ID",
        description="NAME of the environment variable with the access key; the endpoint's user has priority",
    )
    secret_key_env: str = Field(
        default="AWS_SECRET_ACCESS_KEY",
        description="NAME of the environment variable with the secret key; the endpoint's password has priority",
    )
    verify: bool = Field(default=False, description="keep the bytes of GETs and compare them afterwards")
    distinct: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="number of different requests to prepare; they repeat after that",
    )


class S3Driver:
    """Objects have a prefix of their own and are deleted at the end; nothing else in the bucket is touched."""

    name: ClassVar[str] = "s3"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = S3Options

    def __init__(self) -> None:
        self._made: _Bucket | None = None

    def prepare(self, wants: Wants) -> Prepared:
        options: S3Options = wants.options
        self.finish()
        bucket = _Bucket(wants.endpoint, options, np.random.default_rng(wants.seed).bytes(4096))
        bucket.make()
        self._made = bucket
        with clean_up_on_failure(self.finish):
            if options.operation != "put":
                bucket.fill()
            requests = _requests(wants, options, bucket)
        return Prepared(
            requests=requests,
            wire=WIRE,
            keeps=Keeps.REPLY if options.verify else Keeps.NOTHING,
            notes={
                "objects": f"{options.objects} of {options.object_size} bytes in {options.bucket}",
                "signatures": f"valid for seven days from {bucket.signer.at:%Y-%m-%dT%H:%M:%SZ}",
            },
        )

    def digest(self, request: Request, reply: Reply) -> Digest:
        if reply.status >= 400:
            return Digest(cause=Cause.STATUS, detail=f"{reply.status}: {reply.body[:300].decode(errors='replace')}")
        if request.expected is not None and hashlib.sha256(reply.body).digest() != request.expected:
            return Digest(cause=Cause.CONTENT, detail=f"the {len(reply.body)} bytes differ from those that were put")
        return Digest()

    def finish(self) -> None:
        if self._made is not None:
            self._made.remove()
            self._made = None


class _Bucket:
    """The bucket, and our objects in it."""

    def __init__(self, endpoint: Endpoint, options: S3Options, noise: bytes) -> None:
        self._endpoint = endpoint
        self._options = options
        self._noise = noise * (options.object_size // len(noise) + 2)
        self._prefix = f"prony-{secrets.token_hex(6)}/"
        self._is_ours = False
        access, secret = _keys(endpoint, options)
        now = datetime.now(UTC)
        self.host = _host(endpoint)
        self.signer = Signer(access, secret, options.region, self.host, now)

    def address(self, method: str, number: int | None = None) -> str:
        """Return the signed address of an object, or of the bucket, without the endpoint's base."""
        own = "" if number is None else f"/{self._prefix}{number:06d}"
        base = self._endpoint.base.rstrip("/")
        return self.signer.address(method, f"{base}/{self._options.bucket}{own}")[len(base) :]

    def content(self, number: int) -> bytes:
        """Return an object's bytes: always the same for the same number, others for another."""
        if not self._options.object_size:
            return b""
        named = f"{number:08d}".encode()[: self._options.object_size]
        at = number * 37 % 4096
        return named + self._noise[at : at + self._options.object_size - len(named)]

    def make(self) -> None:
        """Make the bucket where it is not there."""
        region = self._options.region
        place = "" if region == "us-east-1" else _place(region)
        with self._session() as session:
            if session.ask("HEAD", self.address("HEAD"), good=(404,)).status_code == 404:
                session.ask("PUT", self.address("PUT"), place.encode())
                self._is_ours = True

    def fill(self) -> None:
        def put(session: HttpSession, number: int) -> None:
            session.ask("PUT", self.address("PUT", number), self.content(number))

        self._each(put)

    def remove(self) -> None:
        def delete(session: HttpSession, number: int) -> None:
            session.ask("DELETE", self.address("DELETE", number), good=(404,))

        self._each(delete)
        if self._is_ours:
            with self._session() as session:
                # 409: somebody else has put something there since.
                session.ask("DELETE", self.address("DELETE"), good=(404, 409))

    def _each(self, does: Callable[[HttpSession, int], None]) -> None:
        with self._session() as session, ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(lambda number: does(session, number), range(self._options.objects)):
                pass

    def _session(self) -> HttpSession:
        return HttpSession(self._endpoint, {"Host": self.host})


def _requests(wants: Wants, options: S3Options, bucket: _Bucket) -> list[Request]:
    each = 500 + (0 if options.operation == "get" else options.object_size)
    count = how_many(wants, options.distinct, bytes_each=each, least=4)
    rng = np.random.default_rng([wants.seed, 1])
    shares = {"get": options.get_share, "put": 1 - options.get_share}
    operations = shared_out(rng, shares if options.operation == "mixed" else {options.operation: 1.0}, count)
    # Every object before any comes again, so that few puts at the same time are to the same one.
    numbers = (rng.permutation(count) % options.objects).tolist()
    return [
        _request(operation, number, wants, bucket, verify=options.verify)
        for operation, number in zip(operations, numbers, strict=True)
    ]


def _request(operation: str, number: int, wants: Wants, bucket: _Bucket, *, verify: bool) -> Request:
    method = operation.upper()
    body = bucket.content(number) if operation == "put" else b""
    content = request_bytes(method, bucket.address(method, number), wants.endpoint, {"Host": bucket.host}, body)
    is_judged = verify and operation == "get"
    expected = hashlib.sha256(bucket.content(number)).digest() if is_judged else None
    return Request(content, operation=operation, expected=expected)


def _keys(endpoint: Endpoint, options: S3Options) -> tuple[str, str]:
    access = endpoint.user or os.environ.get(options.access_key_env, "")
    secret = endpoint.password or os.environ.get(options.secret_key_env, "")
    if not access or not secret:
        names = f"{options.access_key_env} and {options.secret_key_env}"
        raise InputError("the keys to sign requests are missing", hint=f"export {names}")
    return access, secret


def _host(endpoint: Endpoint) -> str:
    if endpoint.path:
        return "localhost"
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return host if endpoint.port == (443 if endpoint.tls else 80) else f"{host}:{endpoint.port}"


def _place(region: str) -> str:
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    inner = f"<LocationConstraint>{region}</LocationConstraint>"
    return f'<CreateBucketConfiguration xmlns="{space}">{inner}</CreateBucketConfiguration>'
