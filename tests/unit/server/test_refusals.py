"""Whatever a client sends, it gets a problem document and never a fault of the server."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import httpx
import pytest
from structlog.testing import capture_logs

from prony.server import protocol

from .house import House

EXPERIMENTS = "/api/v1/experiments"
JSON = {"Content-Type": "application/json"}


def problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """Return the document of a refusal that is as it should be."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = response.json()
    assert found["type"] == f"urn:prony:{code}"
    assert (found["code"], found["status"]) == (code, status)
    return found


def test_a_body_that_stops_is_cut_off_with_a_line_in_the_log(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "BODY_S", 0.5)
    port = int(house.url.rpartition(":")[2])
    head = b"POST /api/v1/recipes/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with capture_logs() as lines, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head + b'Content-Length: 100\r\n\r\n{"text": ')
        with suppress(ConnectionError):  # it was cut off, not answered
            assert connection.recv(65536) == b""
    told = [line["event"] for line in lines if line["event"].startswith("connection")]
    assert told == ["connection closed: the request body did not arrive in time"]


def test_an_unknown_path_is_a_problem(house: House) -> None:
    assert "/nope" in str(problem(house.client.get("/nope"), 404, "not_found")["detail"])


def test_a_wrong_method_tells_all_that_the_path_takes(house: House) -> None:
    response = house.client.put(EXPERIMENTS)
    problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null null", b"\xff\xfe{}", b'{"text": "\\ud800"}', b"[" * 100_000, b"nul\0l", b'{"a": 1e}',
        b'{"text": "\xed\xa0\x80"}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_malformed(house: House, body: bytes) -> None:
    problem(house.client.post(EXPERIMENTS, content=body, headers=JSON), 400, "malformed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": 7}, "text"),
        ({"text": "x", "nmae": "y"}, "nmae"),
        ({"text": "x", "priority": 10**400}, "priority"),
        ({"text": "x", "priority": 1.5}, "priority"),
        ({"text": "x", "overrides": ["a=1"] * 101}, "overrides"),
        ({"text": "x", "name": "../../etc/passwd"}, "name"),
    ],
)
def test_a_field_that_is_wrong_is_named(house: House, body: dict[str, object], field: str) -> None:
    found = problem(house.client.post(EXPERIMENTS, json=body), 422, "invalid")
    assert found["field"] == field
    assert found["hint"]
    assert [one["path"] for one in found["problems"]] == [field]  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [[], "text", 7, None, True])
def test_a_body_that_is_no_object_is_invalid(house: House, body: object) -> None:
    problem(house.client.post(EXPERIMENTS, content=json.dumps(body), headers=JSON), 422, "invalid")


def test_a_recipe_that_is_wrong_comes_back_with_every_problem(house: House) -> None:
    found = problem(house.submit("name: x\nwrokload: 1\n"), 422, "recipe")
    assert found["title"] == "Unprocessable Entity"
    assert {one["path"] for one in found["problems"]} == {"wrokload"} or found["problems"]  # type: ignore[attr-defined]


def test_a_nul_in_text_is_refused_and_an_escaped_backslash_before_it_is_not(house: House) -> None:
    assert problem(house.client.post(EXPERIMENTS, json={"text": "a\0b"}), 422, "invalid")["detail"] == (
        "the body contains a NUL character"
    )
    problem(house.client.post(EXPERIMENTS, json={"text": r"a: b\u0000"}), 422, "recipe")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x/json"])
def test_another_content_type_is_unsupported(house: House, kind: str) -> None:
    response = house.client.post(EXPERIMENTS, content=b'{"text": "x"}', headers={"Content-Type": kind})
    problem(response, 415, "unsupported_media_type")


def test_a_json_type_with_a_parameter_or_a_suffix_is_taken(house: House) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"):
        response = house.client.post(EXPERIMENTS, content=b"{}", headers={"Content-Type": kind})
        problem(response, 422, "invalid")


def test_a_body_that_is_too_large_is_refused_by_its_length(house: House) -> None:
    body = json.dumps({"text": "x" * 2**20}).encode()
    response = house.client.post(EXPERIMENTS, content=body, headers=JSON)
    assert problem(response, 413, "too_large")["title"] == "Request Entity Too Large"  # by every Python
    assert house.client.get("/api/v1/health").is_success  # over the same connection: the rest was passed over


def test_a_body_that_does_not_tell_its_length_is_refused_when_it_has_become_too_large(house: House) -> None:
    def pieces() -> object:
        for _ in range(64):
            yield b" " * 2**15

    response = house.client.post(EXPERIMENTS, content=pieces(), headers=JSON)  # type: ignore[arg-type]
    problem(response, 413, "too_large")


@pytest.mark.parametrize("name", ["experiments/..", "experiments/%00", "jobs/%ff", "agents/-x", "experiments/a%2Fb"])
def test_an_id_that_cannot_be_one_is_not_found(house: House, name: str) -> None:
    assert raw(house, f"GET /api/v1/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0] == 404


@pytest.mark.parametrize("noun", ["experiments", "jobs", "agents"])
def test_an_id_that_nothing_has_is_not_found(house: House, noun: str) -> None:
    response = house.client.get(f"/api/v1/{noun}/zzz")
    problem(response, 404, response.json()["code"])
    assert "zzz" in response.json()["detail"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit"), ("limit=1e400", "limit"),
        (f"limit={'9' * 5000}", "limit"), ("sate=failed", "sate"), ("state=nope", "state"), ("name=%00", "name"),
        ("name=a%0Ab", "name"), ("cursor=", "cursor"), ("cursor=%20", "cursor"),
    ],
)  # fmt: skip
def test_a_question_that_is_wrong_names_its_parameter(house: House, query: str, field: str) -> None:
    assert problem(house.client.get(f"{EXPERIMENTS}?{query}"), 422, "invalid")["field"] == field


@pytest.mark.parametrize("noun", ["experiments", "jobs", "agents", "tokens", "audit"])
@pytest.mark.parametrize("cursor", ["nonsense", "-1", "9" * 400, "AAAA", "e30=", "%ED%A0%80", "bnVsbA==", "W10="])
def test_a_cursor_that_is_none_is_never_a_fault(house: House, noun: str, cursor: str) -> None:
    response = house.client.get(f"/api/v1/{noun}?cursor={cursor}")
    assert response.status_code in (200, 422), response.text


def test_too_many_parameters_are_refused(house: House) -> None:
    problem(house.client.get(EXPERIMENTS + "?" + "&".join(f"a{i}=1" for i in range(60))), 400, "malformed")


@pytest.mark.parametrize("label", ["x", "=x", "a b=c", "a=b=c", "%00=1"])
def test_a_label_is_a_key_and_a_value(house: House, label: str) -> None:
    assert problem(house.client.get(f"/api/v1/jobs?label={label}"), 422, "invalid")["field"] == "label"


@pytest.mark.parametrize("key", [b"x" * 256, "k\u00e9y".encode(), b"a\tb"])
def test_an_idempotency_key_is_short_and_printable(house: House, key: bytes) -> None:
    response = house.client.post(EXPERIMENTS, json={"text": "x"}, headers=[(b"Idempotency-Key", key)])
    assert problem(response, 422, "invalid")["field"] == "Idempotency-Key"


def raw(house: House, text: str | bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes that no client library would, and return status, headers and body."""
    parts = urlsplit(house.url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=60) as connection:
        connection.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {line.split(": ")[0]: line.split(": ", 1)[1] for line in lines}, body


def test_what_is_no_http_is_a_problem_too(house: House) -> None:
    status, headers, body = raw(house, "HELO there\r\n\r\n")
    assert (status, json.loads(body)["code"]) == (400, "malformed")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("where", ["path", "header", "headers"])
def test_a_head_without_end_is_cut_off(house: House, where: str) -> None:
    long = "x" * 70_000
    text = {
        "path": f"GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "header": f"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n",
        "headers": "GET / HTTP/1.1\r\n" + "".join(f"X-{i}: {i:0100}\r\n" for i in range(700)) + "\r\n",
    }[where]
    status, _, body = raw(house, text)
    assert (status, json.loads(body)["code"]) == (431, "too_large")


@pytest.mark.parametrize("length", ["-1", "abc", "99999999999999999999999"])
def test_a_length_that_is_none_is_refused(house: House, length: str) -> None:
    head = f"POST {EXPERIMENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    status, _, _ = raw(house, f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{{}}")
    assert status in (400, 413)


def test_an_upload_must_say_how_long_it_is(house: House) -> None:
    head = "PATCH /api/v1/leases/x/upload?offset=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    status, _, body = raw(house, head)
    assert (status, json.loads(body)["code"]) == (411, "length_required")


@pytest.mark.parametrize("offset", ["-1", "x", "", "1.5", "9" * 30])
def test_an_offset_is_a_number(house: House, offset: str) -> None:
    response = house.client.patch(f"/api/v1/leases/x/upload?offset={offset}", content=b"x")
    assert problem(response, 422, "invalid")["field"] == "offset"


@pytest.mark.parametrize("sha256", ["", "x", "0" * 63, "g" * 64])
def test_a_result_comes_with_its_checksum(house: House, sha256: str) -> None:
    response = house.client.put("/api/v1/leases/x/result", content=b"x", headers={"Prony-Sha256": sha256})
    assert problem(response, 422, "invalid")["field"] == "Prony-Sha256"


def test_every_answer_has_safe_headers_and_an_id(house: House) -> None:
    for path in (EXPERIMENTS, "/nope", "/api/v1/health", "/metrics"):
        headers = house.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert len(headers["x-request-id"]) == 16
        assert "server" not in headers
        assert not [name for name in headers if name.startswith("access-control")]


def test_a_sane_request_id_is_kept_and_another_is_not(house: House) -> None:
    assert house.client.get("/nope", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert house.client.get("/nope", headers={"X-Request-Id": "a b"}).headers["x-request-id"] != "a b"


def test_a_fault_tells_nothing_of_what_is_inside(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(house.fleet.queries, "queue", broken)
    with capture_logs() as lines:
        response = house.client.get("/api/v1/queue", headers={"X-Request-Id": "r1"})
    assert "secret" not in response.text
    problem(response, 500, "internal")
    (fault,) = [line for line in lines if line["event"] == "fault"]
    assert isinstance(fault["exc_info"], RuntimeError)


def chunked(house: House, rest: bytes) -> tuple[int, dict[str, str], bytes]:
    head = f"POST {EXPERIMENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return raw(house, f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode() + rest)


def test_a_body_in_small_chunks_is_put_together(house: House) -> None:
    body = json.dumps({"text": "name: [", "name": "small.yaml"}).encode()
    status, _, answer = chunked(house, b"".join(b"1;x=y\r\n%c\r\n" % one for one in body) + b"0\r\nX-End: x\r\n\r\n")
    assert (status, json.loads(answer)["code"]) == (422, "recipe")


@pytest.mark.parametrize("rest", [b"1;" + b"x" * 40_000, b"0\r\n" + b"X-Many: x\r\n" * 4000])
def test_trailers_and_extensions_without_end_are_cut_off(house: House, rest: bytes) -> None:
    status, _, answer = chunked(house, rest)
    assert (status, json.loads(answer)["code"]) == (431, "too_large")


def test_a_client_far_over_the_limit_reads_why_it_is_refused(house: House) -> None:
    status, _, answer = raw(house, b"GET / HTTP/1.1\r\nX-Long: " + b"x" * (6 * 2**20))
    assert (status, json.loads(answer)["code"]) == (431, "too_large")


def refused(connection: socket.socket) -> None:
    """Send too long a head and read the whole answer."""
    connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 70_000)
    received = b""
    while piece := connection.recv(65536):
        received += piece
    assert received.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(("size", "pause_s"), [(65536, 0.0), (1, 0.05)])
def test_who_goes_on_sending_after_a_refusal_is_cut_off(house: House, size: int, pause_s: float) -> None:
    parts = urlsplit(house.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        refused(connection)
        assert send_until_cut_off(connection, b"x" * size, pause_s) < 2**28


def send_until_cut_off(connection: socket.socket, piece: bytes, pause_s: float) -> int:
    """Return how many bytes could be sent."""
    sent, never, deadline = 0, threading.Event(), time.monotonic() + 60
    try:
        while time.monotonic() < deadline and sent < 2**30:
            sent += connection.send(piece)
            never.wait(pause_s)
    except ConnectionError:
        return sent
    raise AssertionError(f"{sent} bytes could be sent, and it was not cut off")


def test_a_refused_connection_makes_room_for_another(house: House) -> None:
    """Of those that only wait to be closed, none keeps out a client that sends whole requests."""
    parts = urlsplit(house.url)
    with ExitStack() as stack:
        for _ in range(150):  # more than an address may have half-open
            connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
            stack.enter_context(connection)
            connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 70_000)
        assert house.client.get("/api/v1/health").is_success
