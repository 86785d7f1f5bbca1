"""Mock OpenAI's API: chat, text completions, embeddings and the list of models.

Tokens of a prompt are words between white space, and `system_fingerprint` says so: no tokenizer is here.
"""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

from prony.load.mock.script import Ask, Piece, script_text
from prony.load.mock.start import MockOptions

FINGERPRINT = "mock-tokens-are-words"
_DIMENSIONS = 64


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _usage(ask: Ask, reasoning: int) -> dict[str, Any]:
    cached = {} if ask.cached_tokens is None else {"prompt_tokens_details": {"cached_tokens": ask.cached_tokens}}
    return cached | {
        "prompt_tokens": ask.prompt_tokens,
        "completion_tokens": ask.tokens,
        "total_tokens": ask.prompt_tokens + ask.tokens,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


class _Events:
    """What both streams share: server-sent events with an id, and [DONE] at the end."""

    content_type: ClassVar[bytes] = b"text/event-stream; charset=utf-8"
    prefix: ClassVar[str]
    noun: ClassVar[str]

    def lead(self, ask: Ask, number: int) -> bytes:
        made = dumps({**self._about(number), "object": self.noun, "model": ask.model})
        return b"data: " + made[:-1] + b","

    def _about(self, number: int) -> dict[str, Any]:
        # Of the same length for every request, as a script's chunks need it.
        return {
            "id": f"{self.prefix}-{number:016x}",
            "created": int(time.time()),
            "system_fingerprint": FINGERPRINT,
        }

    def _event(self, ask: Ask, choice: dict[str, Any]) -> bytes:
        rest: dict[str, Any] = {"choices": [{"index": 0, **choice}]}
        if ask.with_usage:
            rest["usage"] = None
        return dumps(rest)[1:] + b"\n\n"

    def _usage_event(self, ask: Ask, reasoning: int) -> list[bytes]:
        return [dumps({"choices": [], "usage": _usage(ask, reasoning)})[1:] + b"\n\n"] if ask.with_usage else []

    def terminator(self) -> bytes:
        return b"data: [DONE]\n\n"

    def garbage(self) -> bytes:
        return b'data: {"id":"%b-0","choices":[{"index":0,"delta":{"content": NO JSON\n\n' % self.prefix.encode()

    def error(self, message: str, kind: str) -> bytes:
        return dumps({"error": {"message": message, "type": kind, "param": None, "code": None}})


class MockOpenAiChat(_Events):
    """POST /v1/chat/completions."""

    prefix = "chatcmpl"
    noun = "chat.completion.chunk"
    reasons: ClassVar[bool] = True

    def __init__(self, options: MockOptions) -> None:
        self._reasoning = options.reasoning
        self._tools = options.tools

    def opening(self, ask: Ask) -> Sequence[bytes]:
        return [self._event(ask, {"delta": {"role": "assistant", "content": ""}, "finish_reason": None})]

    def token(self, piece: Piece, ask: Ask) -> bytes:
        return self._event(ask, {"delta": self._delta(piece), "finish_reason": None})

    def _delta(self, piece: Piece) -> dict[str, Any]:
        if piece.is_reasoning:
            return {"reasoning_content": piece.text}
        if not self._tools:
            return {"content": piece.text}
        said: dict[str, Any] = {"index": 0, "function": {"arguments": _argument(piece)}}
        if piece.is_first:
            said |= {"id": "call_0", "type": "function", "function": {"name": "note", **said["function"]}}
        return {"tool_calls": [said]}

    def closing(self, ask: Ask) -> Sequence[bytes]:
        finish = self._event(ask, {"delta": {}, "finish_reason": self._reason(ask)})
        return [finish, *self._usage_event(ask, min(self._reasoning, ask.tokens))]

    def _reason(self, ask: Ask) -> str:
        if ask.is_cut:
            return "length"
        return "tool_calls" if self._tools else "stop"

    def whole(self, ask: Ask, number: int) -> bytes:
        reasoning = min(self._reasoning, ask.tokens)
        answer = script_text(reasoning, ask.tokens - reasoning, ask.words)
        message: dict[str, Any] = {"role": "assistant", "content": answer}
        if self._tools:
            call = {"name": "note", "arguments": _argument(Piece(answer, False, True, True))}
            message |= {"content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": call}]}
        if reasoning:
            message["reasoning_content"] = script_text(0, reasoning, ask.words)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(ask)}
        return dumps(
            {**self._about(number), "object": "chat.completion", "model": ask.model, "choices": [choice]}
            | {"usage": _usage(ask, reasoning)}
        )


def _argument(piece: Piece) -> str:
    """Return a piece of a tool's arguments; all of them together are a JSON object."""
    inner = json.dumps(piece.text, ensure_ascii=False)[1:-1]
    return ('{"text":"' if piece.is_first else "") + inner + ('"}' if piece.is_last else "")


class Text(_Events):
    """POST /v1/completions."""

    prefix = "cmpl"
    noun = "text_completion"
    reasons: ClassVar[bool] = False

    def opening(self, ask: Ask) -> Sequence[bytes]:  # noqa: ARG002 - there is no role in a text
        return []

    def token(self, piece: Piece, ask: Ask) -> bytes:
        return self._event(ask, {"text": piece.text, "logprobs": None, "finish_reason": None})

    def closing(self, ask: Ask) -> Sequence[bytes]:
        reason = "length" if ask.is_cut else "stop"
        finish = self._event(ask, {"text": "", "logprobs": None, "finish_reason": reason})
        return [finish, *self._usage_event(ask, 0)]

    def whole(self, ask: Ask, number: int) -> bytes:
        reason = "length" if ask.is_cut else "stop"
        choice = {"index": 0, "text": script_text(0, ask.tokens, ask.words), "logprobs": None, "finish_reason": reason}
        return dumps(
            {**self._about(number), "object": self.noun, "model": ask.model, "choices": [choice]}
            | {"usage": _usage(ask, 0)}
        )


@lru_cache(maxsize=16)
def _vector(dimensions: int, as_text: bool) -> Any:
    """Return one direction of length 1; the same for every text."""
    values = [dimensions**-0.5 * (-1) ** index for index in range(dimensions)]
    return base64.b64encode(struct.pack(f"<{dimensions}f", *values)).decode() if as_text else values


def embeddings(model: str, count: int, words: int, wanted: dict[str, Any]) -> bytes:
    """Return the answer of POST /v1/embeddings."""
    asked = wanted.get("dimensions")
    dimensions = asked if isinstance(asked, int) and 1 <= asked <= 65536 else _DIMENSIONS
    vector = _vector(dimensions, wanted.get("encoding_format") == "base64")
    data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(count)]
    usage = {"prompt_tokens": words, "total_tokens": words}
    return dumps({"object": "list", "data": data, "model": model, "usage": usage})


def models(name: str, created: int) -> bytes:
    """Return the answer of GET /v1/models."""
    one = {"id": name, "object": "model", "created": created, "owned_by": "prony"}
    return dumps({"object": "list", "data": [one]})
