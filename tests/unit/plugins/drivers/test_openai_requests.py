"""Requests of the OpenAI drivers: their contents, the model they name and the servers asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streams import DONE, chunk, event, in_pieces, usage

from prony.errors import InputError, TransportError
from prony.plugins.drivers.openai.chat import OpenAiChat
from prony.plugins.drivers.openai.completions import OpenAiCompletions
from prony.plugins.drivers.openai.requests import OpenAiText, TextOptions, under_v1
from prony.ports.driver import Endpoint, Keeps, Prepared, Prompt, Wants
from servers.canned import Canned, canned, document

HERE = Endpoint(host="127.0.0.1", port=8000)
PROMPT = Prompt(({"role": "system", "content": "be brief"}, {"role": "user", "content": "wie groß?"}), max_tokens=16)


@pytest.fixture
def server() -> Iterator[Canned]:
    with canned() as found:
        yield found


def at(server: Canned) -> Endpoint:
    return Endpoint(host="127.0.0.1", port=int(server.url.rpartition(":")[2]))


def prepared(
    *prompts: Prompt, driver: OpenAiText | None = None, endpoint: Endpoint = HERE, base: Path = Path(), **options: Any
) -> Prepared:
    wants = Wants(endpoint, TextOptions(**options), seed=1, prompts=prompts or (PROMPT,), base=base)
    return (driver or OpenAiChat()).prepare(wants)


def taken_apart(content: bytes) -> tuple[str, dict[str, str], Any]:
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert headers["content-length"] == str(len(body))
    return first, headers, json.loads(body)


def body_of(made: Prepared, index: int = 0) -> Any:
    return taken_apart(made.requests[index].content)[2]


def test_a_chat_request_streams_and_asks_for_its_usage() -> None:
    made = prepared(model="m")
    first, headers, body = taken_apart(made.requests[0].content)
    assert first == "POST /v1/chat/completions HTTP/1.1"
    assert (headers["host"], headers["content-type"]) == ("127.0.0.1:8000", "application/json")
    assert "authorization" not in headers
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "wie groß?"}],
        "max_tokens": 16,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert (made.keeps, made.wire) == (Keeps.REPLY, "prony.load.http:HttpWire")


def test_a_completion_has_its_prompt_as_one_text() -> None:
    made = prepared(model="m", driver=OpenAiCompletions())
    first, _, body = taken_apart(made.requests[0].content)
    assert first == "POST /v1/completions HTTP/1.1"
    assert body["prompt"] == "be brief\n\nwie groß?"
    assert "messages" not in body


def test_an_answer_in_one_piece_is_asked_for_without_stream() -> None:
    body = body_of(prepared(model="m", stream=False))
    assert "stream" not in body
    assert "stream_options" not in body


def test_an_exact_length_is_asked_for_with_fields_that_only_some_servers_know() -> None:
    exact = Prompt(PROMPT.messages, max_tokens=16, exact_tokens=True)
    assert body_of(prepared(exact, model="m"))["ignore_eos"] is True
    assert body_of(prepared(exact, model="m"))["min_tokens"] == 16
    assert "ignore_eos" not in body_of(prepared(exact, model="m", extensions=False))
    assert "ignore_eos" not in body_of(prepared(PROMPT, model="m"))


def test_options_add_to_the_body_and_have_the_last_word() -> None:
    extra = {"top_p": 0.5, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    body = body_of(prepared(model="m", temperature=0, max_tokens_field="max_completion_tokens", extra=extra))
    assert (body["temperature"], body["top_p"], body["max_completion_tokens"]) == (0, 0.5, 16)
    assert body["stream_options"]["continuous_usage_stats"] is True
    assert "max_tokens" not in body


def test_turns_of_a_session_come_one_after_the_other() -> None:
    members = [0, 1, 0, None, 1, 0]
    prompts = [Prompt(PROMPT.messages, session=member) for member in members]
    assert [request.after for request in prepared(*prompts, model="m").requests] == [None, None, 0, None, 1, 2]


def test_the_key_comes_from_the_environment_and_stands_in_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    made = prepared(model="m", api_key_env="MY_KEY")
    assert taken_apart(made.requests[0].content)[1]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in str(made.notes) + str(made.wire_options)


def test_a_key_that_is_not_there_is_the_callers_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(InputError, match="MY_KEY is not set"):
        prepared(model="m", api_key_env="MY_KEY")


def test_a_user_in_the_address_is_named_to_the_server() -> None:
    made = prepared(model="m", endpoint=Endpoint(host="h", port=80, user="ann", password="pw"))
    assert taken_apart(made.requests[0].content)[1]["authorization"] == "Basic YW5uOnB3"


def test_a_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(InputError, match="is not a valid request"):
        prepared(model="m", headers={"X-A": "a\r\nb: c"})


def test_the_only_model_of_a_server_is_found(server: Canned) -> None:
    server.says(document({"object": "list", "data": [{"id": "tiny", "object": "model"}]}))
    made = prepared(endpoint=at(server))
    assert body_of(made)["model"] == "tiny"
    assert made.notes["model"] == "tiny"
    assert server.asked == ["GET /v1/models"]


def test_of_several_models_the_caller_names_one(server: Canned) -> None:
    server.says(document({"data": [{"id": "a"}, {"id": "b"}]}))
    with pytest.raises(InputError, match="several models") as caught:
        prepared(endpoint=at(server))
    assert "a, b" in caught.value.hint


@pytest.mark.parametrize("answer", [{"data": []}, {"data": None}, {}, []])
def test_a_server_without_models_is_told(server: Canned, answer: Any) -> None:
    server.says(document(answer))
    with pytest.raises(InputError, match="no model"):
        prepared(endpoint=at(server))


def test_a_server_that_refuses_to_tell_its_models_is_quoted(server: Canned) -> None:
    server.says(document({"error": "who are you?"}, status=401))
    with pytest.raises(TransportError, match=r"answered 401.*who are you") as caught:
        prepared(endpoint=at(server))
    assert caught.value.code == "bad_status"


def test_a_server_that_speaks_otherwise_or_not_at_all_is_told(server: Canned) -> None:
    server.says(document("<html>"))
    with pytest.raises(TransportError, match="JSON"):
        prepared(endpoint=at(server))
    with pytest.raises(TransportError, match="cannot be reached"):
        prepared(endpoint=Endpoint(host="127.0.0.1", port=1))


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/models"),
        ("/api", "/v1/models"),
        ("/v1", "/models"),
        ("/a/v1beta/", "/models"),
        ("/vllm", "/v1/models"),
    ],
)
def test_an_address_that_ends_in_a_version_keeps_it(base: str, path: str) -> None:
    assert under_v1(Endpoint(host="h", port=1, base=base), "/models") == path


def test_nothing_to_ask_is_told() -> None:
    with pytest.raises(InputError, match="no prompts"):
        OpenAiChat().prepare(Wants(HERE, TextOptions(model="m"), seed=1))


def test_tokens_are_counted_here_only_where_the_server_does_not(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    counter = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    counter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    counter.save(str(tmp_path / "words.json"))
    driver = OpenAiChat()
    made = prepared(driver=driver, model="m", tokenizer="words.json", base=tmp_path)
    said = [event(chunk({"reasoning_content": "well, "})), event(chunk({"content": "two words"}))]
    assert driver.digest(made.requests[0], in_pieces([*said, DONE])).output_tokens == 3
    assert driver.digest(made.requests[0], in_pieces([*said, event(usage(4, 9)), DONE])).output_tokens == 9
