"""Bytes that are no request, half of one or a spoilt one, sent to every port of a server: it goes on answering.

`PRONY_TEST_FUZZ` (12) times 25 are how many spoilt requests each port is sent.
"""

from __future__ import annotations

import os
import random
import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from chaos.attacks import connect, warm
from chaos.fleet import Fleet, fleet
from lanes import THOROUGH
from servers.ports import free_port

# `make test-slow` tries more of them.
pytestmark = pytest.mark.scaled
EXAMPLES = 25 * int(os.environ.get("PRONY_TEST_FUZZ", "12" if THOROUGH else "4"))
BODY = b'{"text": "name: x\\nworkload: {kind: model}\\n"}'
HTTP = (
    b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/v1/experiments?limit=5 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nX-Request-Id: abc\r\n\r\n",
    b"POST /api/v1/recipes/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY),
    b"POST /api/v1/recipes/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nX-Trailer: x\r\n\r\n" % (len(BODY), BODY),
    b"PUT /api/v1/leases/x/result HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /api/campaigns HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
)
LISTS = (
    b"*1\r\n$4\r\nPING\r\n",
    b"*3\r\n$5\r\nLPUSH\r\n$4\r\njobs\r\n$3\r\nabc\r\n",
    b"*2\r\n$5\r\nMULTI\r\n$1\r\nx\r\n*1\r\n$4\r\nEXEC\r\n",
    b"*3\r\n$5\r\nBRPOP\r\n$4\r\njobs\r\n$3\r\n0.1\r\n",
    b"LLEN jobs\r\n",
)
PIECES = (
    b"\r\n", b"\n", b"\0", b"\xff" * 8, b"-1", b"99999999999999999999", b"0x10", b": ", b";", b" " * 300, b"A" * 5000,
    b"HTTP/1.1", b"HTTP/9.9", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"%2e%2e/", b"*9\r\n",
    b"$-1",
)  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, dict[str, int]]]:
    with fleet(tmp_path_factory.mktemp("bytes")) as made:
        ports = {"sark": free_port(), "lists": free_port()}
        options = ["--sark", "--sark-port", str(ports["sark"]), "--sark-redis-port", str(ports["lists"])]
        made.add_server(options=options).start()
        made.wait_ready()
        warm(made.url)
        yield made, {**ports, "prony": made.port}


def spoil(chance: random.Random, sound: tuple[bytes, ...]) -> bytes:
    """Return some requests with bytes changed, cut out, doubled or put in; or bytes by chance alone."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(1, 4000))
    data = bytearray(b"".join(chance.choices(sound, k=chance.randrange(1, 4))))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + chance.randrange(1, 20)] = b""
            case 1:
                data[at:at] = chance.choice(PIECES)
            case 2:
                data[at : at + 1] = chance.randbytes(1)
            case _:
                data[at:at] = data[max(0, at - chance.randrange(1, 200)) : at]
        data = data or bytearray(b"x")
    return bytes(data)


def answer_to(port: int, data: bytes, chance: random.Random) -> bytes:
    """Send the bytes in pieces, say that no more come, and return all that is answered until the server closes."""
    with connect(port) as connection:
        said = b""
        with suppress(ConnectionError):
            while data:
                size = chance.randrange(1, len(data) + 1)
                connection.sendall(data[:size])
                data = data[size:]
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while got := connection.recv(65536):
                said += got
    return said


@pytest.mark.parametrize("port", ["prony", "sark", "lists"])
def test_a_server_outlives_whatever_bytes_come(running: tuple[Fleet, dict[str, int]], port: str) -> None:
    made, ports = running
    chance = random.Random(f"bytes {port}")
    for number in range(EXAMPLES):
        data = spoil(chance, LISTS if port == "lists" else HTTP)
        try:
            said = answer_to(ports[port], data, chance)
        except TimeoutError:
            pytest.fail(f"number {number} was neither answered nor closed in 60 s: {data[:2000]!r}")
        if port != "lists":
            assert not said or re.match(rb"HTTP/1\.[01] (1|2|3|4)\d\d ", said), (data[:2000], said[:500])
        if number % 50 == 0:
            assert httpx.get(f"{made.url}/api/v1/health", timeout=60).status_code == 200
    log = made.servers[0].log.read_text(errors="replace")
    assert '"fault"' not in log, log[-4000:]
    assert "Traceback" not in log, log[-4000:]
