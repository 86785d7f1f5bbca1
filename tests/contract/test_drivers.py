"""What every driver promises: options that explain themselves, bytes made beforehand, and a digest that never raises.

A driver is added with one line in `CASES`.
"""

from __future__ import annotations

import importlib
import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lanes import count_examples
from prony.load.wire import Wire
from prony.model.base import Noun
from prony.plugins.drivers.command import CommandDriver
from prony.plugins.drivers.grpc import GrpcHealth
from prony.plugins.drivers.http.driver import Http
from prony.plugins.drivers.ollama import Ollama
from prony.plugins.drivers.openai.chat import OpenAiChat
from prony.plugins.drivers.openai.completions import OpenAiCompletions
from prony.plugins.drivers.openai.embeddings import OpenAiEmbeddings
from prony.plugins.drivers.postgres.driver import PostgresDriver
from prony.plugins.drivers.redis.driver import RedisDriver
from prony.plugins.drivers.s3 import S3Driver
from prony.plugins.drivers.vectors.chroma import ChromaDriver
from prony.plugins.drivers.vectors.qdrant import QdrantDriver
from prony.ports.driver import Cause, Digest, Driver, Endpoint, Prepared, Prompt, Reply, Request, Wants
from prony.ports.plugins import DRIVERS, find_plugins


@dataclass(frozen=True)
class Case:
    """`offline` are options with which nothing is asked of the endpoint; None where `prepare` always speaks to it."""

    driver: type[Any]
    offline: Mapping[str, Any] | None


CASES = (
    Case(OpenAiChat, {"model": "m"}),
    Case(OpenAiCompletions, {"model": "m"}),
    Case(OpenAiEmbeddings, {"model": "m", "batch": 2}),
    Case(Ollama, {"model": "m"}),
    Case(Http, {"path": "/{seq}", "body": '{"key": "{random_hex:8}"}'}),
    Case(RedisDriver, None),
    Case(PostgresDriver, None),
    Case(S3Driver, None),
    Case(ChromaDriver, None),
    Case(QdrantDriver, None),
    Case(GrpcHealth, None),
    Case(CommandDriver, None),
)
PROMPTS = tuple(
    Prompt(({"role": "user", "content": f"how far is {n}, in Größe?"},), max_tokens=7, session=n // 2) for n in range(6)
)
STATUSES = st.sampled_from([0, 200, 204, 302, 404, 500])
# What replies are made of, so that garbage comes near to sense.
WORDS = st.sampled_from(
    [
        b"data: ", b"data:", b"event: error\n", b"error: ", b": ping", b"\n", b"\n\n", b"\r\n", b"[DONE]", b"{", b"}",
        b"[", b"]", b",", b":", b'"', b"null", b"true", b"1", b"-1", b"1e999", b'"choices"', b'"delta"', b'"content"',
        b'"text"', b'"message"', b'"error"', b'"usage"', b'"data"', b'"embedding"', b'"done"', b'"response"', b"\xff",
        b'{"choices":[{"delta":{"content":"a"}}]}', b'{"choices":[{"delta":{"content":5}}],"usage":[]}',
        b'{"message":{"content":["x",{"text":"y"}]},"done":true}', b'{"data":[{"embedding":[1,null]}]}',
        b'{"error":{"message":[1]}}', b'{"choices":[null]}', b"[" * 2000, b'{"a":' * 2000, b"\\ud800",
    ]
)  # fmt: skip
BODIES = st.one_of(st.binary(max_size=200), st.lists(WORDS, max_size=30).map(b"".join))


@pytest.fixture(params=CASES, ids=lambda case: case.driver.name)
def case(request: pytest.FixtureRequest) -> Case:
    made: Case = request.param
    return made


def prepared(case: Case, seed: int = 1) -> tuple[Driver, Prepared]:
    driver: Driver = case.driver()
    endpoint = Endpoint(host="127.0.0.1", port=9)
    options = case.driver.Options(**(case.offline or {}))
    wants = Wants(endpoint, options, seed=seed, count=20, prompts=PROMPTS if driver.asks else (), scratch=Path())
    return driver, driver.prepare(wants)


def replied(status: int, body: bytes, cuts: list[int]) -> Reply:
    """Return a reply that came in pieces, cut wherever."""
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    sizes = [after - before for before, after in pairwise(edges)]
    return Reply(status, np.arange(len(sizes), dtype=np.int64) * 1000, sizes, body)


def test_every_registered_driver_is_asked() -> None:
    assert set(find_plugins(DRIVERS)) <= {case.driver.name for case in CASES}


class TestEveryDriver:
    def test_says_its_name_what_it_speaks_to_and_whether_it_needs_prompts(self, case: Case) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", case.driver.name)
        assert case.driver.schemes
        assert isinstance(case.driver.asks, bool)

    def test_its_options_are_a_strict_noun_that_explains_every_field(self, case: Case) -> None:
        assert issubclass(case.driver.Options, Noun)
        unexplained = [name for name, field in case.driver.Options.model_fields.items() if not field.description]
        assert unexplained == []
        with pytest.raises(ValidationError):
            case.driver.Options(no_such_option=1)

    def test_its_options_have_defaults_and_a_schema(self, case: Case) -> None:
        assert json.dumps(case.driver.Options.model_json_schema())
        options = case.driver.Options()
        assert case.driver.Options.model_validate_json(options.model_dump_json()) == options

    def test_may_finish_without_having_begun_and_asks_nobody(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[object] = []
        monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
        driver = case.driver()
        driver.finish()
        driver.finish()
        assert asked == []


class TestEveryDriverThatCanPrepareAlone:
    @pytest.fixture(autouse=True)
    def _no_network(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        if case.offline is None:
            pytest.skip("it makes things at its endpoint first")

        def refuse(*_: object) -> None:
            raise AssertionError("something was asked of the network")

        monkeypatch.setattr(socket.socket, "connect", refuse)

    def test_makes_bytes_that_the_seed_decides(self, case: Case) -> None:
        first, again = (prepared(case, seed=5)[1].requests for _ in range(2))
        assert first
        assert all(isinstance(request.content, bytes) and request.content for request in first)
        assert [request.content for request in first] == [request.content for request in again]

    def test_names_a_wire_and_options_that_can_travel(self, case: Case) -> None:
        _, made = prepared(case)
        module, _, name = made.wire.partition(":")
        assert issubclass(getattr(importlib.import_module(module), name), Wire)
        assert json.loads(json.dumps(dict(made.wire_options))) == dict(made.wire_options)
        assert all(isinstance(text, str) for pair in made.notes.items() for text in pair)

    def test_a_request_comes_after_one_before_it(self, case: Case) -> None:
        _, made = prepared(case)
        assert all(request.after is None or request.after < index for index, request in enumerate(made.requests))


@settings(max_examples=count_examples(60), deadline=None)
@given(status=STATUSES, body=BODIES, cuts=st.lists(st.integers(0, 400), max_size=5), which=st.integers(0, 100))
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.offline is not None], ids=lambda case: case.driver.name
)
def test_a_digest_never_raises(case: Case, status: int, body: bytes, cuts: list[int], which: int) -> None:
    driver, made = prepared(case)
    digest = driver.digest(made.requests[which % len(made.requests)], replied(status, body, cuts))
    assert isinstance(digest, Digest)
    assert isinstance(digest.cause, Cause)


@settings(max_examples=count_examples(60), deadline=None)
@given(status=STATUSES, body=BODIES, cuts=st.lists(st.integers(0, 400), max_size=5))
@pytest.mark.parametrize("driver", [case.driver for case in CASES], ids=lambda driver: driver.name)
def test_a_digest_before_anything_was_prepared_never_raises(
    driver: type[Driver], status: int, body: bytes, cuts: list[int]
) -> None:
    digest = driver().digest(Request(b""), replied(status, body, cuts))
    assert digest.cause is Cause.OK or digest.detail
