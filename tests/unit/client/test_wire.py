"""Addresses, headers and answers that are errors, without any connection."""

from __future__ import annotations

import itertools
import json

import pytest

from prony.client import wire
from prony.errors import (
    AccessError,
    CapacityError,
    ConflictError,
    InputError,
    NotFoundError,
    PronyError,
    RecipeError,
    StoreError,
    TransportError,
)
from prony.model.queue import Queue

WHERE = "http://lab:8800"


def problem(code: str, status: int, **more: object) -> bytes:
    told = {"type": f"urn:prony:{code}", "title": "t", "status": status, "code": code, "detail": "it is so"}
    return json.dumps(told | more).encode()


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("http://127.0.0.1:8800", "http://127.0.0.1:8800"),
        (" https://lab.example.org/ ", "https://lab.example.org"),
        ("https://lab.example.org/prony/api/v1/", "https://lab.example.org/prony"),
        ("http://[::1]:8800/", "http://[::1]:8800"),
    ],
)
def test_an_address_is_kept_without_what_is_added_to_it(written: str, kept: str) -> None:
    assert wire.base_of(written) == kept


@pytest.mark.parametrize(
    "written",
    ["", "lab:8800", "ftp://lab", "http://", "http://lab:port", "http://me:pass@lab", "http://lab?x=1", "http://a b"],
)
def test_what_is_no_address_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(InputError) as caught:
        wire.base_of(written)
    assert "http://127.0.0.1" in caught.value.hint
    assert "pass" not in caught.value.message


def test_an_id_cannot_lead_elsewhere() -> None:
    assert wire.endpoint(WHERE, "jobs", "../agents?x#y") == f"{WHERE}/api/v1/jobs/..%2Fagents%3Fx%23y"
    for climbing in ("..", ".", ""):
        with pytest.raises(InputError):
            wire.endpoint(WHERE, "jobs", climbing)


def test_a_token_travels_in_the_header_and_only_if_it_can() -> None:
    assert wire.headers("s3cret", key="k") == {"Authorization": "Bearer s3cret", "Idempotency-Key": "k"}
    assert wire.headers(None) == {}
    with pytest.raises(InputError) as caught:
        wire.headers("s3cret\r\nX: y")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("input", 422, InputError),
        ("not_found", 404, NotFoundError),
        ("conflict", 409, ConflictError),
        ("forbidden", 403, AccessError),
        ("unauthorized", 401, AccessError),
        ("too_many", 429, AccessError),
        ("capacity", 503, CapacityError),
        ("store_busy", 503, StoreError),
        ("unknown_engine", 404, NotFoundError),
        ("of_a_newer_server", 409, ConflictError),
        ("of_a_newer_server", 418, InputError),
        ("error", 500, PronyError),
    ],
)
def test_a_problem_becomes_the_error_that_the_server_raised(code: str, status: int, kind: type[PronyError]) -> None:
    error = wire.error_of(status, problem(code, status, hint="do this", a_newer_key=1), WHERE)
    assert type(error) is kind
    assert (error.code, error.message, error.hint) == (code, "it is so", "do this")


def test_every_problem_of_a_recipe_comes_through() -> None:
    error = wire.error_of(422, problem("recipe", 422, problems=[{"path": "measure.run", "line": 4}]), WHERE)
    assert isinstance(error, RecipeError)
    assert error.problems == [{"path": "measure.run", "line": 4}]


def test_the_part_of_the_request_that_is_wrong_is_named() -> None:
    assert wire.error_of(422, problem("input", 422, field="priority"), WHERE).message == "priority: it is so"


def test_who_gave_no_token_is_told_how() -> None:
    body = problem("unauthorized", 401, hint="send it as a header")
    assert wire.error_of(401, body, WHERE, token_hint="enrol first").hint == "enrol first"
    assert wire.error_of(401, body, WHERE).hint == "send it as a header"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (502, b"<html>bad gateway</html>", f"{WHERE} answered 502 Bad Gateway"),
        (404, b'{"detail": "Not Found"}', 'answered 404 Not Found: {"detail": "Not Found"}'),
        (599, b"\xff", "answered 599"),
    ],
)
def test_an_answer_of_something_else_is_no_prony_server(status: int, body: bytes, said: str) -> None:
    error = wire.error_of(status, body, WHERE)
    assert isinstance(error, TransportError)
    assert said in error.message


def test_a_redirection_names_where_to_go() -> None:
    error = wire.error_of(308, b"", WHERE, location="https://lab/")
    assert "https://lab/" in error.message


def test_an_answer_that_cannot_be_read_names_the_key() -> None:
    with pytest.raises(TransportError, match="lots: is missing"):
        wire.read_answer(Queue, b'{"waiting": 1, "leased": 0}', WHERE)


def test_pauses_grow_to_a_limit_and_are_scattered() -> None:
    pauses = list(itertools.islice(wire.delays(1.0, 8.0), 50))
    assert all(0.5 <= pause <= 8.0 for pause in pauses)
    assert all(pause >= 4.0 for pause in pauses[5:])
    assert len(set(pauses)) > 40


def test_a_web_page_in_place_of_an_answer_asks_whether_a_server_is_there() -> None:
    with pytest.raises(TransportError) as caught:
        wire.read_all(Queue, b"<html></html>", WHERE)
    assert "check that a Prony server" in caught.value.hint
