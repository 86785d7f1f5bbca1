"""The HTTP driver: requests from methods, paths and bodies, and checks of replies."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from streams import in_pieces

from prony.errors import InputError
from prony.plugins.drivers.http.driver import Http, HttpOptions
from prony.plugins.drivers.http.template import Template
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Request, Wants

HERE = Endpoint(host="h", port=80)


def prepared(endpoint: Endpoint = HERE, *, seed: int = 1, count: int | None = None, **options: Any) -> Prepared:
    return Http().prepare(Wants(endpoint, HttpOptions(**options), seed=seed, count=count))


def digest(body: bytes, came: int = 200, **options: Any) -> Digest:
    driver = Http()
    driver.prepare(Wants(HERE, HttpOptions(**options), seed=1))
    return driver.digest(Request(b""), in_pieces([body], came))


def first_line(request: Request) -> str:
    return request.content.partition(b"\r\n")[0].decode()


def body_of(request: Request) -> str:
    return request.content.partition(b"\r\n\r\n")[2].decode()


def test_what_never_varies_is_made_once() -> None:
    made = prepared(count=1000)
    assert [request.content for request in made.requests] == [b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"]
    assert made.keeps is Keeps.NOTHING


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [("", "", "/"), ("/x", "", "/x"), ("/x/", "", "/x/"), ("/x", "/y?z=1", "/x/y?z=1"), ("", "/y", "/y")],
)
def test_the_path_follows_the_endpoints_own(base: str, path: str, target: str) -> None:
    made = prepared(Endpoint(host="h", port=80, base=base), path=path)
    assert first_line(made.requests[0]) == f"GET {target} HTTP/1.1"


def test_placeholders_are_filled_for_each_request() -> None:
    made = prepared(count=50, method="post", path="/items/{seq}", body='{"id": {random_int:1:3}, "x": {"y": "{uuid}"}}')
    assert [first_line(request) for request in made.requests] == [f"POST /items/{n} HTTP/1.1" for n in range(50)]
    bodies = [body_of(request) for request in made.requests]
    assert all(re.fullmatch(r'\{"id": [123], "x": \{"y": "[0-9a-f-]{36}"\}\}', body) for body in bodies)
    assert len(set(bodies)) == 50
    assert b"Content-Type: application/json" in made.requests[0].content


def test_no_more_are_made_than_are_sent_or_wanted() -> None:
    assert len(prepared(path="/{seq}", count=7).requests) == 7
    assert len(prepared(path="/{seq}", count=70, distinct=9).requests) == 9
    assert len(prepared(path="/{seq}", distinct=9).requests) == 9


def test_operations_come_by_their_weights_and_the_seed() -> None:
    operations = {"GET /a": 3, "POST /b": 1}
    made = prepared(count=2000, operations=operations, bodies={"POST /b": "x"})
    counts = Counter(request.operation for request in made.requests)
    assert set(counts) == {"GET /a", "POST /b"}
    assert counts["GET /a"] / 2000 == pytest.approx(0.75, abs=0.05)
    assert {body_of(request) for request in made.requests if request.operation == "POST /b"} == {"x"}
    again = prepared(count=2000, operations=operations, bodies={"POST /b": "x"})
    other = prepared(count=2000, operations=operations, bodies={"POST /b": "x"}, seed=2)
    assert [request.content for request in again.requests] == [request.content for request in made.requests]
    assert [request.content for request in other.requests] != [request.content for request in made.requests]


@pytest.mark.parametrize(
    "options",
    [
        {"operations": {"GET /a b": 1}}, {"operations": {"GET /a": 0}}, {"operations": {"GET /a": -1}},
        {"bodies": {"POST /b": "x"}}, {"method": "G ET"}, {"distinct": 0},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HttpOptions(**options)


def test_head_is_told_to_the_wire_and_stays_alone() -> None:
    assert prepared(method="HEAD").wire_options["bodyless"] is True
    with pytest.raises(InputError, match="HEAD cannot be mixed"):
        prepared(operations={"HEAD /a": 1, "GET /a": 1})


def test_headers_are_sent_and_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3")
    made = prepared(
        headers={"X-Trace": "{random_hex:5}", "content-type": "a/b"}, body="{}", api_key_env="MY_KEY", count=2
    )
    assert re.search(rb"\r\nX-Trace: [0-9a-f]{5}\r\n", made.requests[0].content)
    assert b"\r\nAuthorization: Bearer s3\r\n" in made.requests[0].content
    assert made.requests[0].content.lower().count(b"content-type") == 1


def test_expectations_need_the_reply() -> None:
    assert prepared(contains="ok").keeps is Keeps.REPLY
    assert prepared(json_equals={"a": 1}).keeps is Keeps.REPLY
    made = prepared(status=[200, 404])
    assert (made.keeps, made.wire_options["good"]) == (Keeps.REPLY, [200, 404])


@pytest.mark.parametrize(
    ("status", "options", "cause"),
    [
        (200, {}, Cause.OK), (302, {}, Cause.OK), (404, {}, Cause.STATUS), (404, {"status": [404]}, Cause.OK),
        (200, {"status": [404]}, Cause.STATUS), (302, {"status": [200]}, Cause.STATUS),
    ],
)  # fmt: skip
def test_a_good_status_is_one_below_400_or_one_that_is_listed(
    status: int, options: dict[str, Any], cause: Cause
) -> None:
    assert digest(b"", status, **options).cause is cause


def test_a_reply_without_the_text_is_not_what_was_expected() -> None:
    assert digest(b"all is well", contains="well").cause is Cause.OK
    found = digest(b"all is bad", contains="well")
    assert (found.cause, found.detail) == (Cause.CONTENT, "the reply does not contain 'well'")


@pytest.mark.parametrize(
    ("expected", "is_good"),
    [
        ({"a.b.0": 7}, True), ({"a.b.1": "x"}, True), ({"a.b.2": 1}, False), ({"a.c": None}, True),
        ({"a.b.0": "7"}, False),
        ({"ok": True}, True), ({"ok": 1}, False), ({"a.b.x": 1}, False), ({"a": {"b": [7, "x"]}}, True),
        ({"z.z": 1}, False),
    ],
)  # fmt: skip
def test_values_are_found_by_their_path(expected: dict[str, Any], is_good: bool) -> None:
    found = digest(b'{"a": {"b": [7, "x"]}, "ok": true}', json_equals=expected)
    assert (found.cause is Cause.OK) is is_good
    assert bool(found.detail) is not is_good


def test_a_reply_that_is_no_json_where_values_are_expected_is_told() -> None:
    assert digest(b"<html>", json_equals={"a": 1}).detail == "the reply is not JSON"


@settings(deadline=None)
@given(st.text())
def test_text_without_placeholders_stays_what_it_is(text: str) -> None:
    template = Template(text)
    rng = np.random.Generator(np.random.PCG64(1))
    assert template.varies or template.fill(3, rng) == text


@pytest.mark.parametrize(
    "text", ["{random_int}", "{random_int:5}", "{random_int:5:1}", "{random_hex}", "{random_hex:x}"]
)
def test_a_placeholder_that_lacks_its_numbers_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Template(text)


def test_a_choice_is_one_of_its_words() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    template = Template("{choice:red|green|}")
    assert {template.fill(n, rng) for n in range(60)} == {"red", "green", ""}
