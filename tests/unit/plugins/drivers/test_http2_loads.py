"""HTTP/2 on real servers: nginx with and without TLS, gRPC's own; and what is told where it is not spoken."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_lines import MemoryLine
from driver_loads import COUNT, USERS, causes, digested, loaded

from prony.errors import TransportError
from prony.load import http2
from prony.load.endpoint import parse_endpoint
from prony.load.generator import LoadPlan, generate
from prony.load.mock.start import MockOptions, serve_mock
from prony.load.schedule import plan
from prony.model.load import Load
from prony.plugins.drivers.grpc import GrpcHealth
from prony.plugins.drivers.http.driver import Http
from prony.plugins.drivers.openai.chat import OpenAiChat
from prony.ports.driver import Cause, Prompt, Wants
from servers.binaries import AbsentError
from servers.certificates import certificate
from servers.needs import lack
from servers.nginx import Nginx, nginx_server

SPOKEN = ("h2c", "h2")
MS = 1_000_000


@pytest.fixture(scope="module")
def behind() -> Iterator[str]:
    with serve_mock(MockOptions(ttft_ns=20 * MS, itl_ns=5 * MS, tokens=12)) as mock:
        yield mock.url


@pytest.fixture(scope="module")
def nginx(behind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    with ExitStack() as block:
        try:
            yield block.enter_context(nginx_server(folder, certificate(folder), behind))
        except AbsentError as exc:
            lack("nginx", str(exc))


@pytest.mark.parametrize("way", SPOKEN)
def test_requests_are_answered_on_connections_that_are_kept(nginx: Nginx, tmp_path: Path, way: str) -> None:
    options = {"http": 2, "path": "/x?size=300", "contains": "okok"}
    driver = Http()
    prepared, outcome = loaded(driver, parse_endpoint(getattr(nginx, way)), options, tmp_path)
    assert causes(outcome) == {"OK": COUNT}
    assert set(outcome.records["status"].tolist()) == {200}
    assert {len(reply.body) for _, reply in outcome.replies()} == {300}
    assert sum(client.connections_opened for client in outcome.clients) == USERS
    assert {digest.cause for digest in digested(driver, prepared, outcome)} == {Cause.OK}


@pytest.mark.parametrize("way", SPOKEN)
def test_large_bodies_go_and_come_whole(nginx: Nginx, tmp_path: Path, way: str) -> None:
    options = {"http": 2, "method": "POST", "path": "/x?size=700000", "body": "b" * 900_000, "contains": "x"}
    _, outcome = loaded(Http(), parse_endpoint(getattr(nginx, way)), options, tmp_path, count=24)
    assert causes(outcome) == {"OK": 24}
    assert {len(reply.body) for _, reply in outcome.replies()} == {700_000}


def test_statuses_and_replies_without_a_body_are_read(nginx: Nginx, tmp_path: Path) -> None:
    _, outcome = loaded(Http(), parse_endpoint(nginx.h2c), {"http": 2, "path": "/x?status=503"}, tmp_path, count=20)
    assert causes(outcome) == {"STATUS": 20}
    assert set(outcome.records["status"].tolist()) == {503}
    _, outcome = loaded(Http(), parse_endpoint(nginx.h2c), {"http": 2, "method": "HEAD"}, tmp_path / "head", count=20)
    assert causes(outcome) == {"OK": 20}


def test_a_server_that_takes_leave_costs_no_request(behind: str, tmp_path: Path) -> None:
    with ExitStack() as block:
        try:
            few = block.enter_context(nginx_server(tmp_path / "n", certificate(tmp_path), behind, requests=7))
        except AbsentError as exc:
            lack("nginx", str(exc))
        _, outcome = loaded(Http(), parse_endpoint(few.h2), {"http": 2}, tmp_path)
    assert causes(outcome) == {"OK": COUNT}
    assert sum(client.connections_opened for client in outcome.clients) >= COUNT // 7
    assert sum(client.sessions_resumed for client in outcome.clients) > 0


@pytest.mark.parametrize("way", SPOKEN)
def test_a_streamed_answer_keeps_its_gaps(nginx: Nginx, tmp_path: Path, way: str) -> None:
    driver, endpoint = OpenAiChat(), parse_endpoint(getattr(nginx, way))
    prompts = [Prompt(({"role": "user", "content": f"question {n}"},), max_tokens=12) for n in range(8)]
    # The model is not named: the server is asked which one it has, over HTTP/2 too.
    options = OpenAiChat.Options(http=2)
    prepared = driver.prepare(Wants(endpoint, options, seed=1, count=16, prompts=prompts))
    load = Load.model_validate({"closed": {"concurrency": 2}, "requests": 16})
    outcome = generate(LoadPlan(prepared, endpoint, plan(load, base=tmp_path), load, tmp_path / "load", processes=1))
    assert causes(outcome) == {"OK": 16}
    digests = [driver.digest(prepared.requests[row % 8], reply) for row, reply in outcome.replies()]
    assert {digest.output_tokens for digest in digests} == {12}
    gaps = np.concatenate([np.diff(digest.token_ns) for digest in digests if digest.token_ns is not None])
    # Each token leaves 5 ms after the last at the earliest. A client or a proxy that is held up gets several at once,
    # but an answer that was kept until its end would have no gaps at all.
    assert 3 * MS < np.mean(gaps) < 1000 * MS


@pytest.mark.parametrize(("way", "said"), [("http", "does not support HTTP/2"), ("https", "does not offer h2")])
def test_a_server_of_http_1_is_told_before_the_load_and_refused_within(
    nginx: Nginx, tmp_path: Path, way: str, said: str
) -> None:
    endpoint = parse_endpoint(getattr(nginx, way))
    with pytest.raises(TransportError, match=said):
        Http().prepare(Wants(endpoint, Http.Options(http=2), seed=1))
    prepared = Http().prepare(Wants(parse_endpoint(nginx.h2c), Http.Options(http=2), seed=1))
    load = Load.model_validate({"closed": {"concurrency": 1}, "requests": 2})
    outcome = generate(LoadPlan(prepared, endpoint, plan(load, base=tmp_path), load, tmp_path / "load", processes=1))
    assert causes(outcome) == {"REFUSED": 2}


# Framing


def settings(**values: int) -> bytes:
    numbers = {"window": 4, "frame": 5}
    content = b"".join(numbers[name].to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in values.items())
    return http2.frame(4, 0, 0, content)


def open_line(**values: int) -> Any:
    line: Any = MemoryLine(http2.Http2Wire, {})
    line.wire.connection_made()
    assert line.fed(settings(**values), []) == [("ready",)]
    line.written.clear()
    return line


def asked(line: Any, body: bytes = b"") -> None:
    line.wire.send(http2.request_frames("POST" if body else "GET", "/", parse_endpoint("http://host"), {}, body))


REPLY = (
    http2.frame(1, 0, 1, b"\x88")  # the headers in two frames, the body in three, one of them padded
    + http2.frame(9, 0x4, 1, b"\x0f\x0d\x019")
    + http2.frame(0, 0, 1, b"abc")
    + http2.frame(6, 0, 0, b"pingpong")
    + http2.frame(0, 0x8, 1, b"\x02defzz")
    + http2.frame(250, 0, 1, b"unknown")
    + http2.frame(0, 0x1, 1, b"ghi")
)


def test_a_reply_may_be_cut_anywhere() -> None:
    for first, second in [*pairwise(range(len(REPLY))), (0, 0)]:
        line = open_line()
        asked(line)
        assert line.fed(REPLY, [first, second]) == [("done", 200, Cause.OK)], first


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        (http2.frame(3, 0, 1, b"\0\0\0\x08"), ("failed", Cause.RESET)),
        (http2.frame(7, 0, 0, b"\0\0\0\0\0\0\0\0"), ("failed", Cause.RESET)),
        (http2.frame(0, 0x1, 1, b"x"), ("failed", Cause.MALFORMED)),  # a body without a head
        (http2.frame(5, 0x4, 1, b"\0\0\0\x02\x88"), ("failed", Cause.MALFORMED)),  # pushed, though that is off
        (http2.frame(1, 0x5, 1, b"\xbe"), ("failed", Cause.MALFORMED)),  # of a table that is not kept
        (http2.frame(1, 0x0, 1, b"\x88") + http2.frame(0, 0, 1, b"x"), ("failed", Cause.MALFORMED)),
        (http2.frame(1, 0x4, 1, b"\x08\x03103") + http2.frame(1, 0x5, 1, b"\x89"), ("done", 204, Cause.OK)),
    ],
)
def test_what_else_may_come(frames: bytes, told: tuple[Any, ...]) -> None:
    line = open_line()
    asked(line)
    assert line.fed(frames, [])[:1] == [told]


def test_a_body_waits_for_room_in_both_windows() -> None:
    line = open_line(window=10, frame=16_384)
    asked(line, b"x" * 25)
    assert [len(one) for one in line.written] == [len(line.written[0])]
    assert line.written[0].endswith(http2.frame(0, 0, 1, b"x" * 10))
    line.written.clear()
    line.fed(http2.frame(8, 0, 1, (15).to_bytes(4, "big")), [])
    assert line.written == [http2.frame(0, 1, 1, b"x" * 15)]


# gRPC


@pytest.fixture(scope="module")
def healthy() -> Iterator[str]:
    """A real gRPC server: itself and `good` serve, `bad` does not."""
    try:
        import grpc
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    except ImportError as exc:
        lack("grpc", f"no gRPC here: pip install grpcio grpcio-health-checking ({exc})")
    server = grpc.server(ThreadPoolExecutor(4))
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    servicer.set("good", health_pb2.HealthCheckResponse.SERVING)
    servicer.set("bad", health_pb2.HealthCheckResponse.NOT_SERVING)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.mark.parametrize(
    ("service", "found", "said"),
    [
        ("", {"OK": 40}, {(Cause.OK, "")}),
        ("good", {"OK": 40}, {(Cause.OK, "")}),
        ("bad", {"OK": 40}, {(Cause.CONTENT, "the service is NOT_SERVING")}),
        ("unknown", {"STATUS": 40}, set()),
    ],
)
def test_the_health_of_a_grpc_server(
    healthy: str, tmp_path: Path, service: str, found: dict[str, int], said: set[tuple[Cause, str]]
) -> None:
    driver = GrpcHealth()
    prepared, outcome = loaded(driver, parse_endpoint(healthy), {"service": service}, tmp_path, count=40)
    assert causes(outcome) == found
    good = [row for row, cause in enumerate(outcome.records["cause"].tolist()) if cause == Cause.OK]
    digests = [driver.digest(prepared.requests[0], reply) for _, reply in outcome.replies(good)]
    assert {(digest.cause, digest.detail) for digest in digests} == said
    # 5 is gRPC's own number for what is not found.
    assert set(outcome.records["status"].tolist()) == ({5} if service == "unknown" else {0})


def test_a_server_that_is_no_grpc_is_told(nginx: Nginx, tmp_path: Path) -> None:
    _, outcome = loaded(GrpcHealth(), parse_endpoint(nginx.h2c), {}, tmp_path, count=10)
    # A page of HTML or `ok` has no status of gRPC in its trailers.
    assert causes(outcome) == {"TRUNCATED": 10}
    with pytest.raises(TransportError, match="does not support HTTP/2"):
        GrpcHealth().prepare(Wants(replace(parse_endpoint(nginx.http)), GrpcHealth.Options(), seed=1))
