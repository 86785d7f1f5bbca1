"""The Ollama driver: its requests and its streamed replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import cut_at, in_pieces, steps

from prony.errors import InputError
from prony.plugins.drivers.answer import Asked
from prony.plugins.drivers.ollama import Ollama, OllamaOptions
from prony.ports.driver import Cause, Digest, Endpoint, Prepared, Prompt, Request, Wants
from servers.canned import canned, document

HERE = Endpoint(host="127.0.0.1", port=11434)
PROMPT = Prompt(({"role": "user", "content": "why?"},), max_tokens=9, exact_tokens=True)
STAMP = {"model": "m", "created_at": "2026-01-01T00:00:00.1Z"}
LAST = {"done": True, "done_reason": "stop", "eval_count": 12, "prompt_eval_count": 26, "eval_duration": 5}


def line(**value: Any) -> bytes:
    return json.dumps(STAMP | value).encode() + b"\n"


def said(text: str, **more: Any) -> bytes:
    return line(message={"role": "assistant", "content": text, **more}, done=False)


END = line(message={"role": "assistant", "content": ""}, **LAST)


def digest(*pieces: bytes, about: Asked | None = None, status: int = 200) -> Digest:
    return Ollama().digest(Request(b"", about=about), in_pieces(pieces, status))


def stamps(found: Digest) -> list[int]:
    return [] if found.token_ns is None else found.token_ns.tolist()


def prepared(endpoint: Endpoint = HERE, **options: Any) -> Prepared:
    return Ollama().prepare(Wants(endpoint, OllamaOptions(**options), seed=1, prompts=[PROMPT]))


def body_of(made: Prepared) -> Any:
    return json.loads(made.requests[0].content.partition(b"\r\n\r\n")[2])


def test_a_chat_has_messages_and_a_limit() -> None:
    made = prepared(model="m", parameters={"num_ctx": 512}, think=False, keep_alive="1m")
    assert made.requests[0].content.startswith(b"POST /api/chat HTTP/1.1\r\n")
    assert body_of(made) == {
        "model": "m", "stream": True, "messages": [{"role": "user", "content": "why?"}],
        "options": {"num_predict": 9, "num_ctx": 512}, "think": False, "keep_alive": "1m",
    }  # fmt: skip


def test_generating_has_a_prompt() -> None:
    made = prepared(model="m", api="generate", stream=False)
    assert made.requests[0].content.startswith(b"POST /api/generate HTTP/1.1\r\n")
    assert body_of(made) == {"model": "m", "stream": False, "prompt": "why?", "options": {"num_predict": 9}}


def test_the_only_model_of_a_server_is_found() -> None:
    with canned() as server:
        endpoint = Endpoint(host="127.0.0.1", port=int(server.url.rpartition(":")[2]))
        server.says(document({"models": [{"name": "llama3.2:latest", "size": 1}]}))
        assert body_of(prepared(endpoint))["model"] == "llama3.2:latest"
        assert server.asked == ["GET /api/tags"]
        server.says(document({"models": [{"name": "a"}, {"name": "b"}]}))
        with pytest.raises(InputError, match="several models"):
            prepared(endpoint)


def test_a_stream_is_read_line_by_line_with_the_servers_own_counts() -> None:
    found = digest(said("The"), said(" sky"), END)
    assert (found.cause, found.text) == (Cause.OK, "The sky")
    assert (found.input_tokens, found.output_tokens) == (26, 12)
    assert (stamps(found), found.content_ns) == (steps(1, 2), steps(1)[0])


def test_the_last_line_may_still_say_something() -> None:
    found = digest(line(response="a", done=False), line(response="!", **LAST))
    assert (found.text, stamps(found)) == ("a!", steps(1, 2))


def test_thinking_is_a_token_and_no_answer() -> None:
    found = digest(said("", thinking="hm"), said("yes"), END)
    assert (stamps(found), found.content_ns, found.text) == (steps(1, 2), steps(2)[0], "yes")
    also = digest(line(response="", thinking="hm", done=False), line(response="yes", **LAST))
    assert (stamps(also), also.content_ns) == (steps(1, 2), steps(2)[0])


def test_calls_of_tools_are_answers() -> None:
    call = {"function": {"name": "get", "arguments": {"a": 1}}}
    assert digest(said("", tool_calls=[call]), END).text == 'get{"a": 1}'


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=20))
def test_what_was_said_does_not_depend_on_where_it_was_cut(places: list[int]) -> None:
    whole = said("Größe") + said(" 😀") + END
    found = Ollama().digest(Request(b""), in_pieces(cut_at(whole, places)))
    assert (found.cause, found.text, len(stamps(found))) == (Cause.OK, "Größe 😀", 2)


@pytest.mark.parametrize("pieces", [[], [said("a")], [said("a"), END[:-9]], [said("a"), b"{"]])
def test_a_stream_that_is_never_done_is_cut(pieces: list[bytes]) -> None:
    assert digest(*pieces).cause is Cause.TRUNCATED


def test_an_error_within_a_stream_is_a_no_with_its_message() -> None:
    found = digest(said("a"), b'{"error":"an error was encountered while running the model"}\n')
    assert found.cause is Cause.STATUS
    assert found.detail == "an error was encountered while running the model"


def test_a_line_that_is_no_json_is_malformed() -> None:
    assert digest(said("a"), b"nonsense\n", END).cause is Cause.MALFORMED
    assert digest(b"<html>").cause is Cause.MALFORMED


def test_an_empty_answer_is_not_what_was_expected() -> None:
    assert digest(END).cause is Cause.CONTENT


def test_an_answer_in_one_piece_has_counts_and_no_stamps_of_tokens() -> None:
    about = Asked(streamed=False, input_tokens=3)
    body = line(message={"role": "assistant", "content": "Hello!"}, done=True, eval_count=5)
    found = digest(body.rstrip(), about=about)
    assert (found.cause, found.text, found.token_ns) == (Cause.OK, "Hello!", None)
    # A prompt that the server still had in its cache is not evaluated, and not counted, again.
    assert (found.input_tokens, found.output_tokens) == (3, 5)


def test_a_status_that_says_no_tells_why() -> None:
    found = digest(b'{"error":"model not found"}', status=404)
    assert (found.cause, found.detail) == (Cause.STATUS, "404: model not found")
