"""Replies are framed right, however their bytes come, and requests are what HTTP says."""

from __future__ import annotations

from typing import Any

import pytest

from prony.load.http import HttpWire, request_bytes
from prony.ports.driver import Cause, Endpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
HERE = Endpoint(host="h", port=80)


class Paper:
    """A line without a socket: it takes down what the wire tells."""

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        self.told: list[tuple[int, int]] = []
        self.pieces: list[bytes] = []
        self.problems: list[int] = []
        self.written: list[bytes] = []
        self.is_last = False
        self.status = self.reads = 0

    def write(self, content: bytes) -> None:
        self.written.append(content)

    def keep(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def done(self, status: int, cause: int = 0) -> None:
        self.told.append((status, cause))

    def fail(self, cause: int) -> None:
        self.problems.append(cause)

    def last(self) -> None:
        self.is_last = True


@pytest.fixture(autouse=True)
def _no_heads() -> None:
    HttpWire.heads.clear()


def wire_on(paper: Paper, **options: Any) -> HttpWire:
    line: Any = paper
    return HttpWire(line, options)


def told(paper: Paper, *reads: bytes, **options: Any) -> list[tuple[int, int]]:
    wire = wire_on(paper, **options)
    wire.send(b"request")
    for data in reads:
        wire.data_received(data)
    return paper.told


@pytest.mark.parametrize("reply", [OK, CHUNKED])
def test_a_reply_is_whole_wherever_its_bytes_are_cut(reply: bytes) -> None:
    for cut in range(1, len(reply)):
        paper = Paper()
        assert told(paper, reply[:cut], reply[cut:]) == [(200, 0)]
        assert b"".join(paper.pieces) in (b"ok", b"abcde")


def test_a_reply_is_whole_byte_by_byte_and_not_before_its_last() -> None:
    paper = Paper()
    wire = wire_on(paper)
    wire.send(b"request")
    for byte in CHUNKED[:-1]:
        wire.data_received(bytes([byte]))
    assert paper.told == []
    wire.data_received(CHUNKED[-1:])
    assert paper.told == [(200, 0)]


def test_a_head_that_was_seen_before_is_framed_the_same_way() -> None:
    for _ in range(3):
        paper = Paper()
        assert told(paper, OK) == [(200, 0)]
        assert paper.pieces == [b"ok"]
    assert list(HttpWire.heads) == [OK[:-2]]
    assert told(Paper(), OK[:-1], OK[-1:]) == [(200, 0)]
    assert told(Paper(), OK[:-1]) == []


def test_only_heads_that_say_their_length_are_remembered() -> None:
    told(Paper(), CHUNKED)
    told(Paper(), b"HTTP/1.1 204 No Content\r\n\r\n")
    told(Paper(), OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert HttpWire.heads == {}


@pytest.mark.parametrize(
    ("status", "good", "cause"), [(404, (), Cause.STATUS), (404, (404,), Cause.OK), (503, (404,), Cause.STATUS)]
)
def test_a_status_from_400_is_a_failure_unless_it_is_named_good(
    status: int, good: tuple[int, ...], cause: Cause
) -> None:
    reply = OK.replace(b"200", str(status).encode())
    assert told(Paper(), reply, good=good) == [(status, cause)]
    assert told(Paper(), reply, good=good) == [(status, cause)]


def test_an_interim_reply_is_no_reply() -> None:
    assert told(Paper(), b"HTTP/1.1 100 Continue\r\n\r\n" + OK) == [(200, 0)]


def test_a_reply_to_head_has_no_body_whatever_its_length_says() -> None:
    paper = Paper()
    wire = wire_on(paper, bodyless=True)
    for _ in range(2):
        wire.send(b"request")
        wire.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    assert paper.told == [(200, 0), (200, 0)]


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n", OK + b"nonsense"])
def test_what_is_no_http_is_malformed(reply: bytes) -> None:
    paper = Paper()
    told(paper, reply)
    assert paper.problems == [Cause.MALFORMED]


def test_a_server_that_will_close_says_so() -> None:
    paper = Paper()
    told(paper, OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert paper.is_last


@pytest.mark.parametrize(
    ("reads", "cause"),
    [
        ([], Cause.RESET),
        ([b"HTTP/1.1 200"], Cause.TRUNCATED),
        ([OK[:-1]], Cause.TRUNCATED),
        ([CHUNKED[:-5]], Cause.TRUNCATED),
        ([b"HTTP/1.1 200 OK\r\n\r\nall there", b" is"], Cause.OK),
        ([b"HTTP/1.1 500 No\r\n", b"A: b\r\n\r\n"], Cause.STATUS),
    ],
)
def test_the_end_of_the_connection_ends_only_replies_without_a_length(reads: list[bytes], cause: Cause) -> None:
    paper = Paper()
    wire = wire_on(paper)
    wire.send(b"request")
    for data in reads:
        wire.data_received(data)
    assert wire.eof_received() == cause


def test_a_request_has_what_http_wants_and_what_the_caller_gave() -> None:
    assert request_bytes("get", "/a b?x=1", HERE) == b"GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
    sent = request_bytes("POST", "/x", Endpoint(host="::1", port=8000, base="/v1/"), {"host": "me"}, b"body")
    assert sent == b"POST /v1/x HTTP/1.1\r\nhost: me\r\nContent-Length: 4\r\n\r\nbody"
    assert b"Host: [::1]:8000\r\n" in request_bytes("GET", "/", Endpoint(host="::1", port=8000))
    assert b"Host: localhost\r\n" in request_bytes("GET", "/", Endpoint(path="/run/x.sock"))
    assert b"Content-Length: 0\r\n" in request_bytes("POST", "/", HERE)


def test_a_header_cannot_smuggle_another() -> None:
    with pytest.raises(ValueError, match="line break"):
        request_bytes("GET", "/", HERE, {"a": "b\r\nc: d"})
