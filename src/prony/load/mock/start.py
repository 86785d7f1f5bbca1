"""Start a mock server in a child process that ends with its parent.

`prony.load.mock.server` is that process. It says when each chunk of a stream was due and when it was really written,
so that what a client reports can be held against it.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from prony.errors import CapacityError, InputError

_SERVER = "prony.load.mock.server"
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_STOP_S = 10.0
_ASK_S = 60.0


@dataclass(frozen=True)
class MockOptions:
    """What the server answers, and when; a share lies between 0 and 1.

    `errors`, `reset`, `truncate` and `garbage` are shares of the requests, `refuse` is one of the connections; which
    ones is told by the seed. `stall_ns` comes once in each stream, before its middle chunk. `prefix_cache` is how many
    words a block of the cache holds; 0: there is none. `lead`: an answer is the beginning of what was asked about, as a
    plain summariser's would be, and not the same text for everyone.
    """

    ttft_ns: int = 50_000_000
    itl_ns: int = 10_000_000
    tokens: int = 128
    tokens_per_chunk: int = 1
    stall_ns: int = 0
    reasoning: int = 0
    tools: bool = False
    early_headers: bool = False
    split: bool = False
    errors: float = 0.0
    reset: float = 0.0
    truncate: float = 0.0
    garbage: float = 0.0
    refuse: float = 0.0
    prefix_cache: int = 0
    lead: bool = False
    seed: int = 1
    model: str = "mock"
    host: str = "127.0.0.1"
    port: int = 0
    unix: str = ""

    def __post_init__(self) -> None:
        amounts = {
            "ttft": self.ttft_ns, "itl": self.itl_ns, "stall": self.stall_ns, "reasoning": self.reasoning,
            "prefix cache": self.prefix_cache,
        }  # fmt: skip
        negative = [name for name, amount in amounts.items() if amount < 0]
        if negative:
            raise InputError(f"the mock's {' and '.join(negative)} must not be negative", hint="use 0 or more")
        if not 1 <= self.tokens <= 100_000 or not 1 <= self.tokens_per_chunk <= self.tokens:
            raise InputError(
                f"the mock cannot send {self.tokens} tokens in chunks of {self.tokens_per_chunk}",
                hint="set --tokens from 1 to 100000, and --tokens-per-chunk from 1 to that number",
            )
        faults = (self.errors, self.reset, self.truncate, self.garbage)
        if min(*faults, self.refuse) < 0 or self.refuse > 1 or sum(faults) > 1 + 1e-9:
            raise InputError(
                "the mock's fault rates are negative or add up to more than 100%",
                hint="lower --errors, --reset, --truncate, --garbage or --refuse",
            )
        if not 0 <= self.port <= 65535:
            raise InputError(f"{self.port} is not a port", hint="use a number from 0 to 65535")

    @property
    def is_paced(self) -> bool:
        """Does anything of it take time?"""
        return bool(self.ttft_ns or self.itl_ns or self.stall_ns)


@dataclass(frozen=True)
class Mock:
    """A mock that runs. `url` is http://HOST:PORT, or unix://PATH."""

    url: str
    pid: int

    def truth(self) -> dict[str, Any]:
        """Return what the server knows: counts, and what was really written when."""
        found: dict[str, Any] = json.loads(self._ask("GET", "/truth"))
        return found

    def forget(self) -> None:
        """Begin the truth anew; requests in flight stay in flight."""
        self._ask("POST", "/truth/reset")

    def _ask(self, method: str, path: str) -> bytes:
        place = urlsplit(self.url)
        connection = HTTPConnection(place.hostname or "localhost", place.port, timeout=_ASK_S)
        if place.scheme == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_ASK_S)
            connection.sock.connect(place.path)
        try:
            connection.request(method, path, headers={"Host": "localhost"})
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def serve_mock(options: MockOptions | None = None) -> Iterator[Mock]:
    """Run a mock in a process of its own for as long as the block lasts."""
    command = [sys.executable, "-P", "-m", _SERVER, json.dumps(asdict(options or MockOptions()))]
    # The server ends when this pipe does, and so it ends with us whatever ends us.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield _read_address(process)
        finally:
            _stop(process)


def _read_address(process: subprocess.Popen[bytes]) -> Mock:
    line = process.stdout.readline() if process.stdout else b""
    if not line:
        raise CapacityError(
            f"the mock failed to start (exit code {process.wait(_STOP_S)})", hint="see its output above"
        )
    said = json.loads(line)
    if "error" in said:
        raise CapacityError(said["error"]["message"], hint=said["error"]["hint"], code=said["error"]["code"])
    return Mock(said["url"], said["pid"])


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()


def duration_ns(text: str) -> int:
    """Return nanoseconds of `50ms`; 0 needs no unit."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(ns|us|ms|s|m)", text.strip())
    if match is None and text.strip() != "0":
        raise InputError(
            f"{text!r} is not a duration", hint=f"write a number with a unit ({', '.join(_UNITS_NS)}), for example 50ms"
        )
    return round(Fraction(match[1]) * _UNITS_NS[match[2]]) if match else 0


def parse_share(text: str) -> float:
    """Return the share that `1%` is; from 0% to 100%."""
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%", text.strip())
    if match is None or Fraction(match[1]) > 100:
        raise InputError(f"{text!r} is not a percentage", hint="write 0% to 100%, for example 1%")
    return float(Fraction(match[1]) / 100)
