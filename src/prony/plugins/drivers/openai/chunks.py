"""Parse the replies of OpenAI's completion APIs, streamed or in one piece, into text, reasoning and tool calls."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from prony.model.event_stream import is_event_stream, split_events
from prony.plugins.drivers.answer import Answer, Said, complaint, parse_object, read_count
from prony.ports.driver import Cause, Digest, TextLikelihood, format_likelihood

Says = Callable[[dict[str, Any]], Said]  # of one choice
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_MARK = "prony"
_MOST_TRIES = 4  # in vain, one after another: a server whose chunks are all different gains nothing from more


class ChunkEvent(NamedTuple):
    data: bytes
    end: int
    name: str


class ChunkShape:
    """Recognises chunks that differ from one already read in nothing but their text, without reading their JSON.

    The text stands in a string that neither quotes nor escapes anything, between two pieces that are the same in
    every chunk. Putting other plain text between them changes that one value, so what is found is exactly what
    reading the whole would find.
    """

    def __init__(self, key: str, says: Says) -> None:
        self._key = re.compile(rb'"%s"\s*:\s*"' % key.encode())
        self._says = says
        self._before = b""
        self._after = b""
        self._tries = 0

    def texts(self, data: Sequence[bytes], at: int) -> list[str]:
        """Return the texts of the chunks of this shape that follow one another from here; [] where one must be read."""
        before, after = self._before, self._after
        texts: list[str] = []
        if not before:
            return texts
        begin, end, least = len(before), -len(after), len(before) + len(after)
        for chunk in islice(data, at, None):
            if not chunk.startswith(before) or not chunk.endswith(after) or len(chunk) < least:
                break
            try:
                text = chunk[begin:end].decode()
            except UnicodeDecodeError:
                break
            # What cannot be printed may be what JSON does not allow: read it.
            if '"' in text or "\\" in text or not text.isprintable():
                break
            texts.append(text)
        if texts:
            self._tries = 0
        return texts

    def learn(self, data: bytes, chunk: dict[str, Any]) -> None:
        """Take the shape of a chunk that was read, where it has one."""
        if self._tries >= _MOST_TRIES or chunk.get("usage") is not None:
            return
        self._tries += 1
        places = list(self._key.finditer(data))
        if len(places) != 1:
            return
        begin = places[0].end()
        plain = _PLAIN.match(data, begin)
        end = begin if plain is None else plain.end()
        if data[end : end + 1] != b'"':
            return
        probe = parse_object(data[:begin] + _MARK.encode() + data[end:])
        choices = None if probe is None else probe.get("choices")
        if isinstance(choices, list) and len(choices) == 1 and self._says(choices[0]) == Said(_MARK):
            self._before, self._after = data[:begin], data[end:]


def read_stream(body: bytes, says: Says, key: str) -> Answer:
    """Read a stream that must end in [DONE]. `key` is the name of the text in its chunks."""
    answer = Answer()
    data, ends, names, unfinished = split_events(body)
    shape = ChunkShape(key, says)
    at = 0
    while at < len(data):
        if data[at] == b"[DONE]":
            answer.is_whole = True
            return answer
        texts = [] if names else shape.texts(data, at)
        if texts:
            answer.hear_texts(texts, ends[at : at + len(texts)])
            at += len(texts)
        else:
            _read(answer, ChunkEvent(data[at], ends[at], names.get(at, "")), says, shape)
            at += 1
    # The terminator is whole even where no blank line follows it before the connection ends.
    answer.is_whole = unfinished.strip() == b"[DONE]"
    if not data and not answer.is_whole:
        _say_what_it_is(answer, body)
    return answer


def whole(body: bytes, says: Says) -> Answer:
    """Read a reply that came in one piece."""
    answer = Answer(is_whole=True)
    value = parse_object(body)
    if value is None:
        answer.fail(Cause.MALFORMED, "the reply is not a JSON object")
    else:
        take(answer, value, len(body), says)
    return answer


def digest_likelihoods(body: bytes, text_bytes: int) -> Digest:
    """Say how likely a prompt was, by a reply that repeats it with the logarithms of its tokens."""
    value = parse_object(body) or {}
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    told = first.get("logprobs")
    logs = told.get("token_logprobs") if isinstance(told, dict) else None
    known = [one for one in logs if isinstance(one, int | float)] if isinstance(logs, list) else []
    if not known:
        lacks = "the server sent no likelihoods of the prompt: it must support echo and logprobs"
        return Digest(cause=Cause.MALFORMED, detail=lacks)
    usage = value.get("usage")
    read = read_count(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    found = TextLikelihood(len(known), text_bytes, max(0.0, -math.fsum(known)))
    return Digest(input_tokens=read, output_tokens=0, text=format_likelihood(found))


def take(answer: Answer, chunk: dict[str, Any], end: int, says: Says) -> None:
    """Add what one chunk says."""
    error = complaint(chunk)
    if error is not None:
        answer.fail(Cause.STATUS, error)
        return
    _take_usage(answer, chunk.get("usage"))
    choices = chunk.get("choices")
    if choices is None:  # vLLM and others: a chunk with nothing but the usage
        return
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        answer.fail(Cause.MALFORMED, "the choices of a chunk are not a list of objects")
        return
    said = [says(choice) for choice in choices]
    answer.hear(Said("".join(one.answer for one in said), "".join(one.reasoning for one in said)), end)
    reasons = [reason for choice in choices if isinstance(reason := choice.get("finish_reason"), str)]
    answer.finish = reasons[-1] if reasons else answer.finish
    if "error" in reasons:
        answer.fail(Cause.STATUS, "the server ended the answer with an error")


def _read(answer: Answer, event: ChunkEvent, says: Says, shape: ChunkShape) -> None:
    chunk = parse_object(event.data)
    if event.name == "error":
        said = None if chunk is None else complaint(chunk) or chunk.get("message")
        answer.fail(Cause.STATUS, str(said or event.data.decode("utf-8", "replace")))
    elif chunk is None:
        answer.fail(Cause.MALFORMED, f"an event is not a JSON object: {event.data[:100].decode('utf-8', 'replace')}")
    else:
        take(answer, chunk, event.end, says)
        if answer.cause is Cause.OK:
            shape.learn(event.data, chunk)


def _take_usage(answer: Answer, usage: Any) -> None:
    """Keep the last usage that was reported: some servers repeat it in every chunk, others send null until the end."""
    if not isinstance(usage, dict):
        return
    answer.input_tokens = read_count(usage.get("prompt_tokens"))
    answer.output_tokens = read_count(usage.get("completion_tokens"))
    answer.cached_tokens = _cached_tokens(usage)
    details = usage.get("completion_tokens_details")
    if isinstance(details, dict):
        answer.reasoning_tokens = read_count(details.get("reasoning_tokens"))


def _cached_tokens(usage: dict[str, Any]) -> int | None:
    """Return how many tokens of the prompt the server had in its cache, as OpenAI and others say it, or DeepSeek."""
    details = usage.get("prompt_tokens_details")
    told = details.get("cached_tokens") if isinstance(details, dict) else None
    return read_count(usage.get("prompt_cache_hit_tokens") if told is None else told)


def _say_what_it_is(answer: Answer, body: bytes) -> None:
    """Say why a body has no events: an error or a whole answer as plain JSON, or none of the protocol."""
    value = parse_object(body)
    error = None if value is None else complaint(value)
    if error is not None:
        answer.fail(Cause.STATUS, error)
    elif value is not None:
        answer.fail(Cause.CONTENT, "the answer was not streamed")
    elif not is_event_stream(body):
        answer.fail(Cause.MALFORMED, "the reply is not an event stream")


def said_in(message: Any) -> Said:
    """Return what a message or its delta says. A role alone says nothing."""
    if not isinstance(message, dict):
        return Said()
    content = message.get("content")
    if isinstance(content, str) and len(message) == 1:  # what nearly every chunk is
        return Said(content)
    answer = _text(content) + _text(message.get("refusal")) + _calls(message)
    # vLLM renamed the field, others have always called it by either name; both at once say the same thing.
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    return Said(answer, reasoning or _text(message.get("thinking")) or _thoughts(content))


def _text(value: Any) -> str:
    """Return text that is plain, or comes in parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _thoughts(content: Any) -> str:
    """Return the reasoning that some servers send as parts of the content."""
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("thinking")) for part in parts if isinstance(part, dict))


def _calls(message: dict[str, Any]) -> str:
    """Return the names and arguments of calls that the model asks for."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(message.get("function_call"))
    return "".join(_call(function) for function in functions if isinstance(function, dict))


def _call(function: dict[str, Any]) -> str:
    name, arguments = function.get("name"), function.get("arguments")
    written = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    return "".join(part for part in (name, written) if isinstance(part, str))
