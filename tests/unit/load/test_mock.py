"""The mock over real sockets: what its APIs say, when it says so, and that its truth is the truth."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from prony.errors import CapacityError, InputError
from prony.load.mock.respond import Faults
from prony.load.mock.start import Mock, MockOptions, duration_ns, parse_share, serve_mock

MS = 1_000_000
INSTANT = MockOptions(ttft_ns=0, itl_ns=0, tokens=40)
CHAT = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}
WITHIN_S = 180.0


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    """A mock that answers at once, for all tests that only look at what it says."""
    with serve_mock(INSTANT) as running:
        yield running


@pytest.fixture
def client(mock: Mock) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=mock.url, trust_env=False, timeout=WITHIN_S) as found:
        yield found


def asking(mock: Mock) -> httpx.Client:
    return httpx.Client(base_url=mock.url, trust_env=False, timeout=WITHIN_S)


def events(body: str) -> list[Any]:
    """Return the events of a stream that ends as it should."""
    found = body.removesuffix("\n\n").split("\n\n")
    assert found.pop() == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in found]


def lines(body: str) -> list[Any]:
    return [json.loads(line) for line in body.splitlines()]


def streamed(client: httpx.Client, **more: Any) -> list[Any]:
    answer = client.post("/v1/chat/completions", json=CHAT | {"stream": True} | more)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events(answer.text)


def deltas(found: list[Any], name: str) -> str:
    return "".join(event["choices"][0]["delta"].get(name) or "" for event in found if event["choices"])


def connected(mock: Mock) -> socket.socket:
    place = urlsplit(mock.url)
    return socket.create_connection((str(place.hostname), place.port), timeout=WITHIN_S)


def post(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def until(sock: socket.socket, end: bytes) -> bytes:
    """Read until what came ends so, or the other side does."""
    found = b""
    while not found.endswith(end):
        data = sock.recv(65536)
        if not data:
            break
        found += data
    return found


def chunks(content: bytes) -> list[bytes]:
    """Return the chunks of a chunked answer."""
    rest = content.partition(b"\r\n\r\n")[2]
    found = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    assert found.pop() == b""
    return found


# OpenAI's API


def test_a_chat_streams_a_role_then_words_then_its_reason_and_done(client: httpx.Client) -> None:
    first, *words, last = streamed(client)
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert len(words) == INSTANT.tokens
    assert len(deltas(words, "content").split()) == INSTANT.tokens
    assert len({(event["id"], event["model"], event["created"]) for event in (first, *words, last)}) == 1


def test_every_answer_has_an_id_of_its_own(client: httpx.Client) -> None:
    assert streamed(client)[0]["id"] != streamed(client)[0]["id"]


def test_usage_comes_before_done_and_is_null_in_every_other_event(client: httpx.Client) -> None:
    *others, last = streamed(client, stream_options={"include_usage": True})
    assert [event["usage"] for event in others] == [None] * len(others)
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 3
    assert last["usage"]["completion_tokens"] == INSTANT.tokens
    assert last["usage"]["total_tokens"] == INSTANT.tokens + 3
    assert all("usage" not in event for event in streamed(client))


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_the_request_cuts_the_answer(client: httpx.Client, name: str) -> None:
    found = streamed(client, **{name: 7})
    assert len(deltas(found, "content").split()) == 7
    assert found[-1]["choices"][0]["finish_reason"] == "length"
    assert streamed(client, **{name: 1000})[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_shorter_answer_is_the_beginning_of_the_longer(client: httpx.Client) -> None:
    whole = deltas(streamed(client), "content")
    assert whole.startswith(deltas(streamed(client, max_tokens=17), "content"))


def test_a_chat_that_is_not_streamed_says_the_same(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=CHAT).json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"] == deltas(streamed(client), "content")
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == INSTANT.tokens


def test_completions_are_text(client: httpx.Client) -> None:
    body = {"model": "m", "prompt": ["a b", "c"], "max_tokens": 5}
    found = events(client.post("/v1/completions", json=body | {"stream": True}).text)
    whole = client.post("/v1/completions", json=body).json()
    assert {event["object"] for event in found} == {whole["object"]} == {"text_completion"}
    assert "".join(event["choices"][0]["text"] for event in found) == whole["choices"][0]["text"]
    assert whole["usage"] | {"prompt_tokens": 3, "completion_tokens": 5} == whole["usage"]


def test_embeddings_come_for_each_input_as_floats_or_as_base64(client: httpx.Client) -> None:
    body = {"model": "m", "input": ["a b", "c"], "dimensions": 8}
    answer = client.post("/v1/embeddings", json=body).json()
    assert [one["index"] for one in answer["data"]] == [0, 1]
    assert sum(value**2 for value in answer["data"][0]["embedding"]) == pytest.approx(1)
    assert answer["usage"]["prompt_tokens"] == 3
    packed = client.post("/v1/embeddings", json=body | {"encoding_format": "base64"}).json()["data"][0]["embedding"]
    assert struct.unpack("<8f", base64.b64decode(packed)) == pytest.approx(answer["data"][0]["embedding"])


def test_models_and_health_are_there(client: httpx.Client) -> None:
    assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["mock"]
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"max_tokens": 0}', b'{"max_tokens": "many"}'])
def test_what_is_no_such_request_is_told_as_openai_does(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_reasoning_comes_first_in_its_own_field_and_in_chunks_of_its_own() -> None:
    with (
        serve_mock(MockOptions(ttft_ns=0, itl_ns=0, tokens=10, reasoning=5, tokens_per_chunk=2)) as mock,
        asking(mock) as client,
    ):
        found = streamed(client, stream_options={"include_usage": True})
    assert len(deltas(found, "reasoning_content").split()) == 5
    assert len(deltas(found, "content").split()) == 5
    named = [next(iter(event["choices"][0]["delta"]), "") for event in found[1:-2]]
    assert named == ["reasoning_content"] * 3 + ["content"] * 3
    assert found[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}


def test_tool_calls_come_in_pieces_that_make_an_object() -> None:
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=0, tokens=20, tools=True)) as mock, asking(mock) as client:
        found = streamed(client, max_tokens=10)
        whole = client.post("/v1/chat/completions", json=CHAT).json()["choices"][0]
    calls = [event["choices"][0]["delta"]["tool_calls"][0] for event in found[1:-1]]
    assert calls[0]["type"] == "function"
    assert calls[0]["function"]["name"]
    assert len(json.loads("".join(call["function"]["arguments"] for call in calls))["text"].split()) == 10
    assert len(json.loads(whole["message"]["tool_calls"][0]["function"]["arguments"])["text"].split()) == 20
    assert whole["finish_reason"] == "tool_calls"


# Ollama's API


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/generate", lambda line: line["response"]),
        ("/api/chat", lambda line: line["message"]["content"]),
    ],
)
def test_ollama_streams_lines_unless_told_not_to(client: httpx.Client, path: str, said: Callable[[Any], str]) -> None:
    body = CHAT | {"prompt": "one two three", "options": {"num_predict": 6}}
    answer = client.post(path, json=body)
    *tokens, last = lines(answer.text)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [line["done"] for line in tokens] == [False] * 6
    assert last["done"]
    assert last["done_reason"] == "length"
    assert (last["eval_count"], last["prompt_eval_count"]) == (6, 3)
    assert {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"} <= set(last)
    whole = client.post(path, json=body | {"stream": False}).json()
    assert said(whole) == "".join(map(said, tokens))
    assert whole["done"]


def test_ollamas_durations_are_those_of_the_schedule() -> None:
    with serve_mock(MockOptions(ttft_ns=3 * MS, itl_ns=2 * MS, tokens=4)) as mock, asking(mock) as client:
        last = lines(client.post("/api/generate", json={"model": "m", "prompt": "x"}).text)[-1]
    assert (last["prompt_eval_duration"], last["eval_duration"]) == (3 * MS, 3 * 2 * MS)


def test_ollama_thinks_in_a_field_of_its_own() -> None:
    with (
        serve_mock(MockOptions(ttft_ns=0, itl_ns=0, tokens=6, reasoning=2, tools=True)) as mock,
        asking(mock) as client,
    ):
        found = lines(client.post("/api/chat", json=CHAT).text)
    assert [bool(line["message"].get("thinking")) for line in found[:6]] == [True] * 2 + [False] * 4
    assert found[-2]["message"]["tool_calls"][0]["function"]["name"]


def test_ollama_has_tags_a_version_and_errors(client: httpx.Client) -> None:
    assert [one["name"] for one in client.get("/api/tags").json()["models"]] == ["mock"]
    assert client.get("/api/version").json()["version"]
    refused = client.post("/api/chat", content=b"no")
    assert refused.status_code == 400
    assert isinstance(refused.json()["error"], str)


# Plain HTTP


def test_any_other_path_is_ok(client: httpx.Client) -> None:
    assert client.get("/any/thing").text == "ok"
    assert client.post("/any/thing", content=b"x").text == "ok"
    assert client.head("/any/thing").headers["content-length"] == "2"


def test_a_query_asks_for_size_status_and_delay(client: httpx.Client) -> None:
    begin = time.monotonic()
    answer = client.get("/x?size=1001&status=503&delay=20ms")
    assert time.monotonic() - begin >= 0.02
    assert (answer.status_code, len(answer.content)) == (503, 1001)


@pytest.mark.parametrize("query", ["delay=fast", "size=-1", "size=big", "status=99", "delay="])
def test_a_query_that_makes_no_sense_is_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"/x?{query}").status_code == 400


def test_requests_in_one_write_are_answered_in_their_order(mock: Mock) -> None:
    with connected(mock) as sock:
        head = b"GET /x?delay=5ms&size=3 HTTP/1.1\r\nHost: x\r\n\r\n"
        sock.sendall(head + head.replace(b"delay=5ms&size=3", b"size=4") + post("/v1/completions", {"stream": True}))
        found = until(sock, b"0\r\n\r\n")
    sizes = [int(line.split()[1]) for line in found.split(b"\r\n") if line.startswith(b"Content-Length")]
    assert sizes == [3, 4]
    assert found.count(b"data: ") == INSTANT.tokens + 2


def test_a_request_may_come_byte_by_byte(mock: Mock) -> None:
    with connected(mock) as sock:
        for byte in post("/v1/chat/completions", CHAT | {"max_tokens": 1}):
            sock.sendall(bytes([byte]))
        assert b'"finish_reason":"length"' in until(sock, b"}}}")


def test_who_asks_may_wait_for_leave_to_send(mock: Mock) -> None:
    with connected(mock) as sock:
        sock.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert until(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"hi")
        assert until(sock, b"ok").startswith(b"HTTP/1.1 200 OK")


def test_a_connection_closes_when_asked_to(mock: Mock) -> None:
    with connected(mock) as sock:
        sock.sendall(b"GET /x?delay=1ms HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert until(sock, b"never").endswith(b"ok")


def test_what_is_no_http_is_refused_and_closed(mock: Mock) -> None:
    with connected(mock) as sock:
        sock.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
        assert until(sock, b"never").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("ttft_ns", [0, MS])
def test_a_reader_who_is_slow_gets_everything_in_the_end(ttft_ns: int) -> None:
    with serve_mock(MockOptions(ttft_ns=ttft_ns, itl_ns=0, tokens=50_000)) as mock, connected(mock) as sock:
        sock.sendall(post("/v1/chat/completions", CHAT | {"stream": True}))
        sock.recv(1)
        eventually(mock, lambda truth: truth["held_back"] == 1)  # much more than any socket takes at once
        assert until(sock, b"0\r\n\r\n").count(b"data: ") == 50_000 + 3


# When it says so


def test_no_chunk_leaves_before_its_instant_and_the_truth_tells_of_each() -> None:
    options = MockOptions(ttft_ns=40 * MS, itl_ns=5 * MS, tokens=10)
    with serve_mock(options) as mock, asking(mock) as client:
        begin = time.monotonic()
        streamed(client)
        took_s = time.monotonic() - begin
        truth = mock.truth()
    assert took_s >= 0.04 + 9 * 0.005
    assert (truth["requests"], truth["streams"], truth["chunks"], truth["tokens"]) == (1, 1, 10, 10)
    assert truth["lateness_ms"]["count"] == 10
    assert 40 <= truth["ttft_ms"]["max"] <= took_s * 1e3
    assert truth["itl_ms"]["count"] == 9
    # From the arrival to the last chunk: never before the schedule, and all of it within what the client saw.
    assert 85 <= truth["ttft_ms"]["mean"] + 9 * truth["itl_ms"]["mean"] <= took_s * 1e3
    assert truth["in_flight"] == {"now": 0, "mean": pytest.approx(1), "max": 1}


def test_an_answer_that_is_not_streamed_comes_when_its_last_token_would() -> None:
    with serve_mock(MockOptions(ttft_ns=20 * MS, itl_ns=10 * MS, tokens=4)) as mock, asking(mock) as client:
        begin = time.monotonic()
        client.post("/v1/chat/completions", json=CHAT)
        assert time.monotonic() - begin >= 0.05


def test_a_stall_shows_in_the_largest_gap_alone() -> None:
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=MS, tokens=20, stall_ns=2000 * MS)) as mock, asking(mock) as client:
        streamed(client)
        gaps = mock.truth()["itl_ms"]
    assert gaps["max"] >= 1000  # the chunk before it may have been late
    assert gaps["p50"] < 500


def test_several_tokens_may_come_in_one_chunk() -> None:
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=MS, tokens=10, tokens_per_chunk=4)) as mock, asking(mock) as client:
        counts = [len(deltas([event], "content").split()) for event in streamed(client)[1:-1]]
        truth = mock.truth()
    assert counts == [4, 4, 2]
    assert (truth["chunks"], truth["tokens"]) == (3, 10)


def test_early_headers_come_before_the_first_token() -> None:
    with serve_mock(MockOptions(ttft_ns=600_000 * MS, tokens=2, early_headers=True)) as mock, connected(mock) as sock:
        sock.sendall(post("/v1/completions", {"stream": True}))
        assert until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK")  # minutes before


def test_as_many_are_in_flight_as_were_sent_and_the_truth_can_be_begun_anew() -> None:
    with serve_mock(MockOptions(ttft_ns=600_000 * MS)) as mock:
        socks = [connected(mock) for _ in range(8)]
        for sock in socks:
            sock.sendall(post("/v1/completions", {"stream": True}))
        truth = eventually(mock, lambda truth: truth["requests"] == 8)
        assert truth["in_flight"]["max"] == 8
        assert truth["arrivals"]["gap_ns"]["count"] == 7
        assert truth["connections"] == {"opened": 8, "open": 8, "peak": 8}
        mock.forget()
        truth = mock.truth()
        assert truth["requests"] == 0
        assert truth["in_flight"] == {"now": 8, "mean": pytest.approx(8), "max": 8}
        for sock in socks:
            sock.close()
        eventually(mock, lambda truth: truth["connections"]["open"] == 0)


def eventually(mock: Mock, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask for the truth until it is so."""
    end = time.monotonic() + WITHIN_S
    while not holds(truth := mock.truth()):
        assert time.monotonic() < end, truth
    return truth


def test_who_leaves_a_stream_is_no_longer_in_flight() -> None:
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=5 * MS, tokens=10_000)) as mock:
        with connected(mock) as sock:
            sock.sendall(post("/v1/completions", {"stream": True}))
            sock.recv(1)
        assert eventually(mock, lambda truth: truth["in_flight"]["now"] == 0)["chunks"] < 10_000


def test_metrics_are_those_of_the_truth(mock: Mock, client: httpx.Client) -> None:
    client.get("/x")
    found = dict(line.split() for line in client.get("/metrics").text.splitlines() if not line.startswith("#"))
    truth = mock.truth()
    assert int(found["prony_mock_requests_total"]) == truth["requests"]
    assert int(found["prony_mock_tokens_total"]) == truth["tokens"]
    assert found["prony_mock_in_flight"] == "0"


# Faults


def outcome(mock: Mock) -> str:
    """Ask for one stream and name what became of it, as the options name it."""
    with connected(mock) as sock:
        sock.sendall(post("/v1/chat/completions", CHAT | {"stream": True}))
        try:
            found = until(sock, b"0\r\n\r\n") if not _is_error(sock) else b""
        except ConnectionResetError:
            return "reset"
    if not found:
        return "errors"
    body = b"".join(chunks(found))
    if b"NO JSON" in body:
        return "garbage"
    return "" if body.endswith(b"data: [DONE]\n\n") else "truncate"


def _is_error(sock: socket.socket) -> bool:
    sock.recv(1, socket.MSG_PEEK)
    return b" 500 " in sock.recv(20, socket.MSG_PEEK)


@pytest.mark.parametrize("itl_ns", [0, MS // 10])
def test_faults_are_those_of_the_seed_and_each_is_counted(itl_ns: int) -> None:
    options = MockOptions(
        ttft_ns=0, itl_ns=itl_ns, tokens=20, errors=0.1, reset=0.2, truncate=0.15, garbage=0.25, seed=7
    )  # fmt: skip
    faults = Faults(options)
    expected = [faults.draw() for _ in range(60)]
    assert set(expected) == {"", "errors", "reset", "truncate", "garbage"}
    with serve_mock(options) as mock:
        assert [outcome(mock) for _ in range(60)] == expected
        truth = mock.truth()
    assert truth["errors_sent"] == {kind: count for kind, count in Counter(expected).items() if kind}
    assert truth["requests"] == 60


def test_another_seed_has_other_faults() -> None:
    drawn = []
    for seed in (1, 2):
        faults = Faults(MockOptions(errors=0.5, seed=seed))
        drawn.append([faults.draw() for _ in range(100)])
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (MockOptions(errors=1.0), "500"),
        (MockOptions(truncate=1.0), "RemoteProtocolError"),
        (MockOptions(reset=1.0), "ReadError"),
        (MockOptions(garbage=1.0), "~~"),
    ],
)
@pytest.mark.parametrize("path", ["/x", "/x?delay=1ms"])
def test_answers_with_a_length_have_faults_too(options: MockOptions, seen: str, path: str) -> None:
    with serve_mock(options) as mock, asking(mock) as client:
        try:
            answer = client.get(path)
            found = str(answer.status_code) if answer.is_error else answer.text
        except httpx.HTTPError as exc:
            found = type(exc).__name__
        assert found == seen
        assert mock.truth()["errors_sent"] == {Faults(options).draw(): 1}


def test_a_connection_can_be_refused() -> None:
    options = MockOptions(refuse=0.5, seed=3)
    faults = Faults(options)
    expected = [faults.refuses() for _ in range(20)]
    with serve_mock(options) as mock:
        assert [is_refused(mock) for _ in range(20)] == expected


def is_refused(mock: Mock) -> bool:
    try:
        with connected(mock) as sock:
            sock.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
            return not sock.recv(1)
    except ConnectionError:
        return True


def test_split_events_are_cut_within_characters_and_say_the_same() -> None:
    plain = MockOptions(ttft_ns=0, itl_ns=0, tokens=64)
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=0, tokens=64, split=True)) as mock, connected(mock) as sock:
        sock.sendall(post("/v1/chat/completions", CHAT | {"stream": True}))
        found = chunks(until(sock, b"0\r\n\r\n"))
    with serve_mock(plain) as mock, asking(mock) as client:
        expected = deltas(streamed(client), "content")
    assert deltas(events(b"".join(found).decode()), "content") == expected
    assert not any(chunk.endswith(b"\n\n") and chunk.startswith(b"data:") for chunk in found)
    assert any(not _is_text(chunk) for chunk in found)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# Its process


def test_it_serves_on_a_unix_socket_and_takes_it_away_again(tmp_path: Path) -> None:
    path = tmp_path / "mock.sock"
    with serve_mock(MockOptions(unix=str(path), ttft_ns=MS, itl_ns=0)) as mock:
        assert mock.url == f"unix://{path}"
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://x") as client:
            assert len(streamed(client)) == 128 + 2
        assert mock.truth()["streams"] == 1
    assert not path.exists()


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    if not hasattr(os, "pidfd_open"):
        pytest.skip("this system cannot wait for a process that is not its child")
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys\n"
        "from prony.load.mock.start import serve_mock\n"
        "with serve_mock() as mock:\n"
        "    print(mock.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        assert select.select([ended], [], [], WITHIN_S)[0]
    os.close(ended)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(CapacityError, match=f"cannot listen on 127.0.0.1:{port}"),
            serve_mock(MockOptions(port=port)),
        ):
            pass


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": 0}, {"tokens_per_chunk": 0}, {"tokens": 4, "tokens_per_chunk": 5}, {"ttft_ns": -1},
        {"errors": 0.6, "reset": 0.6}, {"refuse": 1.5}, {"port": 70_000}, {"reasoning": -1},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        MockOptions(**given)


def test_durations_and_shares_are_read_as_people_write_them() -> None:
    assert [duration_ns(text) for text in ("0", "0ms", "1.5ms", "2 s", "10us", "7ns")] == [
        0, 0, 1_500_000, 2 * 10**9, 10_000, 7,
    ]  # fmt: skip
    assert [parse_share(text) for text in ("0%", "1%", "2.5 %", "100%")] == [0, 0.01, 0.025, 1]


@pytest.mark.parametrize(
    ("read", "text"), [(duration_ns, "5"), (duration_ns, "-1ms"), (parse_share, "1"), (parse_share, "101%")]
)
def test_what_is_no_duration_or_share_is_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(InputError):
        read(text)
