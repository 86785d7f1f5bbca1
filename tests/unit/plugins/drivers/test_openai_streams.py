"""Replies of OpenAI's chat and completions: streamed, in one piece, cut and broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import DONE, chunk, cut_at, event, in_pieces, steps, usage

from lanes import count_examples
from prony.plugins.drivers.answer import Asked, Said
from prony.plugins.drivers.openai.chat import CHAT, OpenAiChat
from prony.plugins.drivers.openai.chunks import read_stream, said_in
from prony.plugins.drivers.openai.completions import OpenAiCompletions
from prony.ports.driver import Cause, Digest, Reply, Request

ROLE = event(chunk({"role": "assistant", "content": ""}))
END = event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def digest(*pieces: bytes, request: Request | None = None) -> Digest:
    return OpenAiChat().digest(request or Request(b""), in_pieces(pieces))


def stamps(found: Digest) -> list[int]:
    return [] if found.token_ns is None else found.token_ns.tolist()


def test_tokens_have_the_stamps_of_the_reads_that_completed_them() -> None:
    found = digest(
        ROLE, event(chunk({"content": "Hel"})), event(chunk({"content": "lo"})), END, event(usage(5, 2)), DONE
    )
    assert (found.cause, found.text) == (Cause.OK, "Hello")
    assert stamps(found) == steps(2, 3)
    assert found.content_ns == steps(2)[0]
    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (5, 2, None)


def test_an_event_that_came_in_two_reads_counts_from_the_second() -> None:
    first = event(chunk({"content": "Größe"}))
    half = first.index("ß".encode()) + 1  # in the middle of a character
    found = digest(ROLE, first[:half], first[half:], DONE)
    assert found.text == "Größe"
    assert stamps(found) == steps(3)


@settings(max_examples=count_examples(60), deadline=None)
@given(st.lists(st.integers(0, 2000), max_size=40), st.lists(st.text(max_size=8), max_size=12))
def test_what_was_said_does_not_depend_on_where_it_was_cut(places: list[int], texts: list[str]) -> None:
    body = b"".join(event(chunk({"content": text})) for text in ["begin", *texts]) + DONE
    found = OpenAiChat().digest(Request(b""), in_pieces(cut_at(body, places)))
    assert found.cause is Cause.OK
    assert found.text == "begin" + "".join(texts)
    assert stamps(found) == sorted(stamps(found))
    assert len(stamps(found)) == 1 + sum(bool(text) for text in texts)


DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none()
        | st.text(max_size=6)
        | st.sampled_from(['"', "\\", "a\nb", "\u200b", "prony", "\x7f", " "]),
        "reasoning_content": st.none() | st.text(max_size=3),
        "role": st.just("assistant"),
    },
)
CHUNKS = st.one_of(
    DELTAS.map(chunk),
    DELTAS.map(lambda delta: chunk(delta, created=8)),
    DELTAS.map(lambda delta: chunk(delta, usage={"prompt_tokens": 1, "completion_tokens": 4})),
    DELTAS.map(lambda delta: chunk(delta, note={"content": "other"})),
    st.just(chunk({"content": "x"}, error={"message": "broken"})),
    st.just({"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}),
    st.just({"choices": None}),
    st.sampled_from([
        '{"choices":[{"delta":{"content":"a\x01"}}]}', '{"choices":[{"delta":{"content":"a","content":"b"}}]}',
        '{"\\"content":"q","choices":[{"delta":{"content":"c"}}]}', '{"choices":[{"delta": {"content" : "spaced"}}]}',
        "[]", "5", '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    ]),
)  # fmt: skip


@settings(max_examples=count_examples(200), deadline=None)
@given(st.lists(CHUNKS, max_size=12), st.booleans(), st.booleans())
def test_chunks_known_by_their_shape_say_exactly_what_reading_them_says(
    chunks: list[Any], escaped: bool, invalid: bool
) -> None:
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=escaped) for one in chunks]
    body = b"".join(event(text) for text in texts) + DONE
    body = body.replace(b"o", b"\xff", 1) if invalid else body
    assert read_stream(body, CHAT.says, "content") == read_stream(body, CHAT.says, "no such key")


def test_reasoning_is_a_token_and_no_answer() -> None:
    found = digest(
        event(chunk({"role": "assistant", "reasoning_content": "hm"})),
        event(chunk({"reasoning": "so"})),
        event(chunk({"content": "42"})),
        event(usage(3, 9, reasoning_tokens=8)),
        DONE,
    )
    assert stamps(found) == steps(1, 2, 3)
    assert (found.content_ns, found.text) == (steps(3)[0], "42")
    assert (found.output_tokens, found.reasoning_tokens) == (9, 8)


def test_an_answer_that_is_all_reasoning_is_whole_and_has_no_first_answer() -> None:
    found = digest(event(chunk({"reasoning_content": "hm"})), END, DONE)
    assert (found.cause, found.content_ns, stamps(found)) == (Cause.OK, None, steps(1))


def test_calls_of_tools_and_refusals_are_answers() -> None:
    call = {"index": 0, "function": {"name": "get", "arguments": '{"a"'}}
    found = digest(
        event(chunk({"tool_calls": [call]})),
        event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]})),
        event(chunk({"refusal": "no"})),
        DONE,
    )
    assert stamps(found) == steps(1, 2, 3)
    assert found.text == 'get{"a":1}no'


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "assistant"}, Said()),
        ({"content": None}, Said()),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"text": "b"}]}]},
            Said("a", "b"),
        ),
        ({"content": "a", "reasoning": "b", "reasoning_content": "b"}, Said("a", "b")),
        ({"function_call": {"name": "f", "arguments": {"x": 1}}}, Said('f{"x": 1}')),
        ({"tool_calls": "nonsense", "content": 5}, Said()),
        (None, Said()),
    ],
)
def test_messages_say_what_is_in_them(message: Any, said: Said) -> None:
    assert said_in(message) == said


def test_a_chunk_of_many_tokens_is_one_stamp_and_the_server_counts_them() -> None:
    found = digest(event(chunk({"content": "four tokens in one"})), event(usage(2, 4)), DONE)
    assert (found.output_tokens, len(stamps(found))) == (4, 1)


def test_nobody_counted_is_none_and_never_the_number_of_chunks() -> None:
    found = digest(event(chunk({"content": "a"})), event(chunk({"content": "b"})), DONE)
    assert (found.input_tokens, found.output_tokens) == (None, None)


def test_a_count_of_nothing_beside_a_text_is_no_count() -> None:
    found = digest(
        event(chunk({"content": "a"})), event(usage(0, 0)), DONE, request=Request(b"", about=Asked(True, 11))
    )
    assert (found.input_tokens, found.output_tokens) == (11, None)


def test_usage_in_every_chunk_means_the_last() -> None:
    first = chunk({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": 1})
    second = chunk({"content": "b"}, usage={"prompt_tokens": 3, "completion_tokens": 2})
    found = digest(event(first), event(second), event(chunk({"content": ""}, usage=None)), DONE)
    assert (found.input_tokens, found.output_tokens) == (3, 2)


@pytest.mark.parametrize("pieces", [
    [ROLE, event(chunk({"content": "a"}))],
    [ROLE, event(chunk({"content": "a"})), END],
    [ROLE, event(chunk({"content": "a"})), b"data: [DON"],
    [ROLE, event(chunk({"content": "a"})), event(chunk({"content": "b"}))[:-30]],
    [],
])  # fmt: skip
def test_a_stream_without_its_terminator_is_cut(pieces: list[bytes]) -> None:
    found = digest(*pieces)
    assert found.cause is Cause.TRUNCATED


@pytest.mark.parametrize("terminator", [b"data: [DONE]", b"data: [DONE]\n", b"data:[DONE]\r\n\r\n"])
def test_the_terminator_may_be_the_very_end(terminator: bytes) -> None:
    assert digest(event(chunk({"content": "a"})), terminator).cause is Cause.OK


@pytest.mark.parametrize("error", [
    event({"error": {"message": "out of memory", "code": 500}}),
    event({"error": "out of memory"}),
    event({"object": "error", "message": "out of memory"}),
    event(chunk({"content": ""}, error={"message": "out of memory"})),
    b'error: {"code":500,"message":"out of memory"}\n\n',
    b'event: error\ndata: {"message":"out of memory"}\n\n',
    b"event: error\ndata: out of memory\n\n",
])  # fmt: skip
@pytest.mark.parametrize("after", [DONE, b""])
def test_an_error_within_a_stream_is_a_no_with_its_message(error: bytes, after: bytes) -> None:
    found = digest(event(chunk({"content": "a"})), error, after)
    assert (found.cause, found.detail) == (Cause.STATUS, "out of memory")


def test_an_answer_that_ends_in_an_error_is_a_no() -> None:
    end = {"choices": [{"delta": {}, "finish_reason": "error"}]}
    assert digest(event(chunk({"content": "a"})), event(end), DONE).cause is Cause.STATUS


def test_an_event_that_is_no_json_is_malformed() -> None:
    found = digest(event(chunk({"content": "a"})), event('{"choices": [{'), DONE)
    assert found.cause is Cause.MALFORMED
    assert "not a JSON" in found.detail


def test_a_page_of_html_is_malformed() -> None:
    assert digest(b"<html>busy</html>").cause is Cause.MALFORMED


def test_an_answer_that_was_not_streamed_though_asked_is_not_what_was_expected() -> None:
    whole = json.dumps({"choices": [{"message": {"content": "a"}}]}).encode()
    assert digest(whole).cause is Cause.CONTENT
    assert digest(b'{"error":{"message":"no"}}').cause is Cause.STATUS


def test_an_empty_answer_is_not_what_was_expected() -> None:
    found = digest(ROLE, END, event(usage(5, 0)), DONE)
    assert (found.cause, found.detail) == (Cause.CONTENT, "the answer is empty")


def test_comments_between_events_are_passed_over() -> None:
    found = digest(b": OPENROUTER PROCESSING\n\n", event(chunk({"content": "a"})), b": beat\n\n", DONE)
    assert (found.cause, stamps(found)) == (Cause.OK, steps(2))


def test_halves_of_a_character_in_two_events_become_one() -> None:
    halves = [
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n',
    ]
    assert digest(*halves, DONE).text == "😀"


def test_a_status_that_says_no_tells_why() -> None:
    found = OpenAiChat().digest(Request(b""), in_pieces([b'{"error":{"message":"slow down"}}'], status=429))
    assert (found.cause, found.detail) == (Cause.STATUS, "429: slow down")


WHOLE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "four", "reasoning_content": "2+2"}}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 6}},
}


def in_one_piece(body: bytes, expected: str | None = None) -> Digest:
    request = Request(b"", about=Asked(streamed=False), expected=expected)
    return OpenAiChat().digest(request, in_pieces([body]))


def test_an_answer_in_one_piece_has_counts_and_no_stamps_of_tokens() -> None:
    found = in_one_piece(json.dumps(WHOLE).encode())
    assert (found.cause, found.text, found.token_ns, found.content_ns) == (Cause.OK, "four", None, None)
    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (5, 7, 6)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b'{"error":{"message":"no"}}', Cause.STATUS),
        (b'{"choices":[{"message":{"content":""}}]}', Cause.CONTENT),
        (b'{"choices":5}', Cause.MALFORMED),
        (b'{"choices":[', Cause.MALFORMED),
    ],
)
def test_what_is_wrong_with_an_answer_in_one_piece_is_told(body: bytes, cause: Cause) -> None:
    assert in_one_piece(body).cause is cause


@pytest.mark.parametrize(("expected", "quality"), [(" four\n", 1.0), ("five", 0.0), (None, None)])
def test_quality_is_whether_the_expected_answer_came(expected: str | None, quality: float | None) -> None:
    assert in_one_piece(json.dumps(WHOLE).encode(), expected).quality == quality


def test_completions_have_their_text_in_another_place() -> None:
    chunks = [event({"choices": [{"index": 0, "text": text, "finish_reason": None}]}) for text in ("", "a", " b")]
    reply: Reply = in_pieces([*chunks, event(usage(3, 2)), DONE])
    found = OpenAiCompletions().digest(Request(b""), reply)
    assert (found.cause, found.text, found.output_tokens) == (Cause.OK, "a b", 2)
    assert stamps(found) == steps(2, 3)
    assert found.content_ns == steps(2)[0]


def test_events_that_came_in_one_read_share_its_stamp() -> None:
    body = event(chunk({"content": "a"})) + event(chunk({"content": "b"}))
    assert stamps(digest(ROLE, body, DONE)) == steps(2, 2)
