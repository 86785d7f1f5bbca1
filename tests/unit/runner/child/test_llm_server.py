"""The small server of an engine's model, asked over HTTP with an engine whose tokens are bytes."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from prony.kinds.llm.child.server import CompletionServer, ServedModel
from prony.plugins.engines.null import Null
from prony.ports.llm import LlmOptions

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "ignore_eos": True}


@pytest.fixture
def server() -> Iterator[CompletionServer]:
    session = Null().load_llm("llm-0us-0us-context64.null", LlmOptions())
    made = CompletionServer(("127.0.0.1", 0), ServedModel("tiny", session))
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def post(server: CompletionServer, path: str, body: Any) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    found = reply.status, reply.read().decode()
    connection.close()
    return found


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_stream_says_the_same_as_the_whole_answer_and_ends_with_its_usage(server: CompletionServer) -> None:
    asked = HELLO | {"stream": True, "stream_options": {"include_usage": True}}
    status, text = post(server, "/v1/chat/completions", asked)
    *chunks, last, usage = events(text)
    whole = json.loads(post(server, "/v1/chat/completions", HELLO)[1])
    streamed = "".join(one["choices"][0]["delta"]["content"] for one in chunks)
    # What ends in the middle of a character is left out of both.
    assert (status, streamed) == (200, whole["choices"][0]["message"]["content"])
    assert last["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"] == "length"
    counted = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    assert whole["usage"] == usage["usage"] == counted | {"prompt_tokens_details": {"cached_tokens": 0}}


def test_a_prompt_comes_back_with_how_likely_each_of_its_tokens_was(server: CompletionServer) -> None:
    asked = {"prompt": "Hello", "max_tokens": 0, "echo": True, "logprobs": 1}
    status, text = post(server, "/v1/completions", asked)
    first, *others = json.loads(text)["choices"][0]["logprobs"]["token_logprobs"]
    assert (status, first, len(others)) == (200, None, 4)
    assert all(one < 0 and math.isfinite(one) for one in others)


def test_ids_are_taken_for_a_prompt(server: CompletionServer) -> None:
    status, text = post(server, "/v1/completions", {"prompt": [72, 105], "max_tokens": 1})
    assert (status, json.loads(text)["usage"]["prompt_tokens"]) == (200, 2)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/completions", {"prompt": "a", "temperature": 0.7}, "only supports temperature 0"),
        ("/v1/completions", {"prompt": "a" * 90}, "exceed the model's context of 64"),
        ("/v1/completions", {"prompt": ["a", "b"]}, "one text"),
        ("/v1/chat/completions", {"prompt": "a"}, "not follow OpenAI's"),
        ("/v1/elsewhere", {}, "not found: /v1/elsewhere"),
    ],
)
def test_what_it_does_not_do_is_refused_in_words(path: str, body: Any, said: str, server: CompletionServer) -> None:
    status, text = post(server, path, body)
    assert status in (400, 404)
    assert said in json.loads(text)["error"]["message"]
