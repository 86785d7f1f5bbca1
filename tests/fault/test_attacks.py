"""Requests that are made to stall a server: others are answered meanwhile, and a signal still ends it."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from chaos.attacks import LONGEST_END_S, connect, limited, others_asking, send_until_closed, time_end, warm
from chaos.fleet import Fleet, fleet
from lanes import only_slowly
from prony.compat.sark.nouns import COMPUTE_UNITS
from servers.ports import free_port
from servers.waiting import wait_for

MOST_MEMORY_BYTES = 900 * 2**20
DOTTED = ".".join(["a"] * 250_000) + " = 1\n"
# Within every limit on the text, and yet as many jobs as there may be, each with a long text.
COSTLY = (
    'name: costly\nworkload: {kind: model, model: "zoo:noop", engine: onnxruntime}\n'
    f'description: "{"x" * 20_000}"\nmatrix: {{workload.batch_size: {list(range(1, 10_001))}}}\n'
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as made:
        made.add_server().start()
        made.wait_ready()
        yield made


def post(port: int, path: str, document: object) -> socket.socket:
    """Send a request and do not wait for its answer."""
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    connection = connect(port)
    connection.sendall(f"{head}\r\n\r\n".encode() + body)
    return connection


def memory_of(made: Fleet) -> int:
    child = made.servers[0].child
    assert child is not None
    return int(psutil.Process(child.pid).memory_info().rss)


def log_of(made: Fleet) -> str:
    return made.servers[0].log.read_text(errors="replace")


def end(made: Fleet, number: signal.Signals = signal.SIGTERM) -> float:
    """Send the signal and return how long the server took to end, less what the machine kept it from running."""
    child = made.servers[0].child
    assert child is not None
    took_s = time_end(child, number)
    assert took_s is not None, f"{number.name} was not obeyed: {made.servers[0].said()[-1000:]}"
    return took_s


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("recipe.toml", DOTTED, id="dotted key"),
        pytest.param("recipe.yaml", COSTLY, id="large matrix", marks=pytest.mark.slow),
    ],
)
def test_costly_recipes_hold_up_nobody_and_a_signal_ends_the_server(running: Fleet, name: str, text: str) -> None:
    usual_s = warm(running.url)
    with ExitStack() as stack, others_asking(running) as others:
        clients = [
            stack.enter_context(post(running.port, "/api/v1/recipes/check", {"text": text, "name": name}))
            for _ in range(12)
        ]
        time.sleep(3)
        for client in clients:  # they go away without their answers
            client.close()
        others.wait_for_more()
    others.check(usual_s)
    assert memory_of(running) < MOST_MEMORY_BYTES
    assert httpx.get(f"{running.url}/api/v1/health", timeout=60).status_code == 200
    with post(running.port, "/api/v1/recipes/check", {"text": text, "name": name}):
        assert end(running) < LONGEST_END_S
    assert not running.leftovers()


def test_clients_that_go_away_free_what_reads_their_recipes(running: Fleet) -> None:
    warm(running.url)
    for _ in range(8):
        post(running.port, "/api/v1/recipes/check", {"text": COSTLY}).close()
    begin = time.monotonic()
    small = {"text": 'name: small\nworkload: {kind: model, model: "zoo:noop", engine: onnxruntime}\n'}
    answer = httpx.post(f"{running.url}/api/v1/recipes/check", json=small, timeout=120)
    assert answer.json().get("jobs") == 1, answer.text
    # Eight of them in turn would take minutes.
    assert time.monotonic() - begin < 60


def test_a_recipe_over_its_limits_is_refused_with_a_reason(running: Fleet) -> None:
    refused = httpx.post(f"{running.url}/api/v1/experiments", json={"text": DOTTED, "name": "r.toml"}, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (422, "recipe")
    assert "r.toml:1: is nested too deeply: the most is 64 levels" in refused.json()["detail"]
    assert refused.json()["hint"]


HEAD = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = (
    b"POST /api/v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
ENDLESS = {
    "a header's value": (HEAD + b"X-Long: ", b"x" * 65536),
    "a header's name": (HEAD, b"x" * 65536),
    "headers": (HEAD, b"X-Many: x\r\n" * 6000),
    "a path": (b"GET /", b"x" * 65536),
    "an empty line": (b"", b"\r\n" * 30000),
    "a chunk's extension": (CHUNKED + b"1;", b"x" * 65536),
    "extensions of many chunks": (CHUNKED, b"1;" + b"x" * 1000 + b"\r\ny\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"X-Many: x\r\n" * 6000),
    "a trailer": (CHUNKED + b"0\r\nX-Long: ", b"x" * 65536),
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, int, float]]:
    """A server that also has SARK's face, the port of that, and how long a request usually takes."""
    with fleet(tmp_path_factory.mktemp("attacked")) as made:
        port, lists = free_port(), free_port()
        options = ["--sark", "--sark-port", str(port), "--sark-redis-port", str(lists)]
        made.add_server(options=options).start()
        made.wait_ready()
        yield made, port, warm(made.url)


@pytest.mark.parametrize("face", ["prony", "sark"])
@pytest.mark.parametrize("what", list(ENDLESS))
def test_what_never_ends_is_cut_off_and_holds_up_nobody(
    attacked: tuple[Fleet, int, float], what: str, face: str
) -> None:
    made, sark_port, usual_s = attacked
    before = memory_of(made)
    port = made.port if face == "prony" else sark_port
    taken: list[tuple[int, bytes]] = []

    def attack() -> None:
        taken.append(send_until_closed(port, *ENDLESS[what], 200 * 2**20))

    with others_asking(made) as others:
        attackers = [threading.Thread(target=attack) for _ in range(4)]
        for one in attackers:
            one.start()
        for one in attackers:
            one.join(120)
        assert not any(one.is_alive() for one in attackers), f"the server still takes {what}"
    others.check(usual_s)
    assert len(taken) == len(attackers)
    for sent, said in taken:
        assert sent < 100 * 2**20, f"the server took {sent} bytes of {what}"
        assert not said or re.match(rb"HTTP/1.1 4\d\d ", said), said[:200]
    assert memory_of(made) - before < 200 * 2**20
    if what == "trailers":
        wait_for(lambda: "connection closed: the request exceeds a limit" in log_of(made), "a line in the log")


def test_a_body_in_chunks_of_one_byte_holds_up_nobody(attacked: tuple[Fleet, int, float]) -> None:
    made, _, usual_s = attacked
    with others_asking(made) as others:
        _, said = send_until_closed(made.port, CHUNKED, b"1\r\nx\r\n" * 10_000, 12 * 2**20)
    assert b"HTTP/1.1 4" in said, said[:200]
    others.check(usual_s)


UNITS = tuple(COMPUTE_UNITS)
CAMPAIGNS = {
    "equal": ([{"compute_unit": UNITS[0]}] * 20_000, 400),
    "different": ([{"compute_unit": UNITS[n % 6], "num_inference_runs": n + 1} for n in range(3000)], 400),
    "the largest": ([{"compute_unit": UNITS[n % 5], "num_inference_runs": n % 100 + 1} for n in range(5000)], 200),
    "workers": ([{"worker_id": f"worker-{n % 1000}"} for n in range(5000)], 200),
}


@pytest.mark.parametrize("what", list(CAMPAIGNS))
def test_a_large_campaign_holds_up_nobody(attacked: tuple[Fleet, int, float], what: str) -> None:
    made, sark_port, usual_s = attacked
    jobs, status = CAMPAIGNS[what]
    campaign = {"model_url": "https://example.org/model.onnx", "jobs": jobs}
    with others_asking(made) as others:
        answer = httpx.post(f"http://127.0.0.1:{sark_port}/api/campaigns", json=campaign, timeout=60)
        others.wait_for_more()
    others.check(usual_s)
    assert answer.status_code == status, answer.text[:200]


def test_half_sent_heads_do_not_starve_a_server_with_few_descriptors(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with fleet(tmp_path) as made, ExitStack() as stack:
            made.add_server()
            limited(made, 400)
            made.servers[0].start()
            made.wait_ready()
            usual_s = warm(made.url)
            with others_asking(made) as others:
                for _ in range(600):
                    connection = stack.enter_context(connect(made.port))
                    with suppress(ConnectionError):
                        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: loc")
                others.wait_for_more()
            others.check(usual_s)
            log = made.servers[0].log.read_text()
            assert "too many from this address" in log, log[-2000:]
            # One line for many of them.
            assert log.count("too many from this address") < 20
            assert end(made) < LONGEST_END_S
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_head_that_comes_too_slowly_is_answered_and_closed(running: Fleet) -> None:
    with connect(running.port) as slow, connect(running.port) as silent:
        slow.sendall(HEAD)
        said = b""
        while piece := slow.recv(65536):
            said += piece
        assert said.startswith(b"HTTP/1.1 408 "), said[:200]
        assert json.loads(said.partition(b"\r\n\r\n")[2])["code"] == "too_slow"
        assert silent.recv(1) == b""
    wait_for(lambda: "did not arrive in time" in running.servers[0].said(), "a line in the log")


@pytest.mark.parametrize("number", [signal.SIGTERM, *only_slowly(signal.SIGINT)])
def test_a_signal_ends_a_server_that_is_attacked(running: Fleet, number: signal.Signals) -> None:
    warm(running.url)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(post(running.port, "/api/v1/experiments", {"text": COSTLY}))
            stack.enter_context(connect(running.port)).sendall(HEAD)
            stack.enter_context(connect(running.port)).sendall(CHUNKED + b"5\r\nab")
        assert end(running, number) < LONGEST_END_S
    assert not running.leftovers()
