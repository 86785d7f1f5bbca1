"""Mock Ollama's API: generate, chat, tags and version.

Durations are those of the schedule, in nanoseconds; tokens of a prompt are words between white space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from prony.load.mock.openai import dumps
from prony.load.mock.script import Ask, Piece, script_text, spans_ns
from prony.load.mock.start import MockOptions

VERSION = "0.0.0-mock"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Lines:
    """What both share: one JSON object a line, the last one with `done` and what it took."""

    content_type: ClassVar[bytes] = b"application/x-ndjson"
    reasons: ClassVar[bool] = True

    def __init__(self, options: MockOptions, build_line: Callable[[str, str], dict[str, Any]]) -> None:
        """`build_line` returns what a line says: of its answer, and of its thinking."""
        self._options = options
        self._build_line = build_line

    def lead(self, ask: Ask, number: int) -> bytes:  # noqa: ARG002 - lines carry no id
        return dumps({"model": ask.model, "created_at": _now()})[:-1] + b","

    def opening(self, ask: Ask) -> Sequence[bytes]:  # noqa: ARG002 - nothing comes before a token
        return []

    def token(self, piece: Piece, ask: Ask) -> bytes:  # noqa: ARG002 - a line is the same for every request
        said = self._build_line("", piece.text) if piece.is_reasoning else self._build_line(piece.text, "")
        return _rest({**said, "done": False})

    def closing(self, ask: Ask) -> Sequence[bytes]:
        return [*self._calls(ask), _rest({**self._build_line("", ""), **self._done(ask)})]

    def _calls(self, ask: Ask) -> list[bytes]:  # noqa: ARG002 - only a chat has tools
        return []

    def _done(self, ask: Ask) -> dict[str, Any]:
        first_ns, rest_ns = spans_ns(ask.tokens, self, self._options)
        return {
            "done": True,
            "done_reason": "length" if ask.is_cut else "stop",
            "total_duration": first_ns + rest_ns,
            "load_duration": 0,
            "prompt_eval_count": ask.prompt_tokens,
            "prompt_eval_duration": first_ns,
            "eval_count": ask.tokens,
            "eval_duration": rest_ns,
        }

    def terminator(self) -> bytes:
        return b""

    def garbage(self) -> bytes:
        return b'{"model":"mock","response": NO JSON\n'

    def whole(self, ask: Ask, number: int) -> bytes:
        reasoning = min(self._options.reasoning, ask.tokens)
        said = self._build_line(
            script_text(reasoning, ask.tokens - reasoning, ask.words), script_text(0, reasoning, ask.words)
        )
        return self.lead(ask, number) + dumps({**said, **self._done(ask)})[1:]

    def error(self, message: str, kind: str) -> bytes:  # noqa: ARG002 - Ollama's errors have no kind
        return dumps({"error": message})


def _rest(value: dict[str, Any]) -> bytes:
    return dumps(value)[1:] + b"\n"


class Generate(_Lines):
    """POST /api/generate."""

    def __init__(self, options: MockOptions) -> None:
        super().__init__(options, _response)


class MockOllamaChat(_Lines):
    """POST /api/chat."""

    def __init__(self, options: MockOptions) -> None:
        super().__init__(options, _message)

    def _calls(self, ask: Ask) -> list[bytes]:  # noqa: ARG002 - the same call for every request
        if not self._options.tools:
            return []
        call = {"function": {"name": "note", "arguments": {"text": "done"}}}
        return [_rest({"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False})]


def _response(answer: str, thinking: str) -> dict[str, Any]:
    return {"response": answer, "thinking": thinking} if thinking else {"response": answer}


def _message(answer: str, thinking: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer}
    return {"message": {**message, "thinking": thinking} if thinking else message}


def tags(name: str) -> bytes:
    """Return the answer of GET /api/tags."""
    details = {
        "parent_model": "",
        "format": "mock",
        "family": "mock",
        "families": ["mock"],
        "parameter_size": "0B",
        "quantization_level": "none",
    }
    one = {"name": name, "model": name, "modified_at": _now(), "size": 0, "digest": "0" * 64, "details": details}
    return dumps({"models": [one]})
