"""Route the mock server's requests to the API that answers them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from urllib.parse import parse_qs

from prony.errors import InputError
from prony.load.mock import ollama, openai
from prony.load.mock.connection import AnswerPlan, MockConnection, MockRequest, answer_bytes
from prony.load.mock.respond import AskedPrompt, Spoken, Streamed, Whole, Works
from prony.load.mock.script import WORDS, AnswerScripts, Ask, Voice
from prony.load.mock.start import duration_ns

_TEXT = b"text/plain; charset=utf-8"
_MOST_SIZE = 1 << 30


class WrongAskError(Exception):
    """The body is not what this API takes."""


class _Said:
    """The plan of an answer about the mock itself: at once, never faulty, and no part of the truth."""

    def __init__(self, made: Callable[[], bytes], kind: bytes = b"application/json") -> None:
        self._made = made
        self._kind = kind

    def begin(self, line: MockConnection, at_ns: int) -> None:  # noqa: ARG002 - nobody counts this one
        line.uncount()
        line.write(answer_bytes(self._made(), kind=self._kind))


class Fixed:
    """The plan of a refusal that the request itself earned."""

    def __init__(self, content: bytes) -> None:
        self._bytes = content

    def begin(self, line: MockConnection, at_ns: int) -> None:  # noqa: ARG002 - nobody counts this one
        line.write(self._bytes)


class Routes:
    """Everything that the mock answers, by method and path."""

    def __init__(self, works: Works) -> None:
        self._works = works
        options = works.options
        voices: dict[str, Voice] = {
            "/v1/chat/completions": openai.MockOpenAiChat(options),
            "/v1/completions": openai.Text(),
            "/api/generate": ollama.Generate(options),
            "/api/chat": ollama.MockOllamaChat(options),
        }
        self._scripts = {path: AnswerScripts(voice, options) for path, voice in voices.items()}
        created = int(time.time())
        self._said: dict[tuple[str, str], AnswerPlan] = {
            ("GET", "/v1/models"): _Said(lambda: openai.models(options.model, created)),
            ("GET", "/api/tags"): _Said(lambda: ollama.tags(options.model)),
            ("GET", "/api/version"): _Said(lambda: openai.dumps({"version": ollama.VERSION})),
            ("GET", "/health"): _Said(lambda: b"ok", _TEXT),
            ("GET", "/metrics"): _Said(self._metrics, b"text/plain; version=0.0.4; charset=utf-8"),
            ("GET", "/truth"): _Said(lambda: openai.dumps(works.truth.summary(perf_counter_ns()))),
            ("POST", "/truth/reset"): _Said(self._forget),
        }
        if works.cache is not None:
            self._said["POST", "/reset_prefix_cache"] = _Said(self._empty_cache)

    def plan(self, request: MockRequest) -> AnswerPlan:
        """Return what is done for a request; the same for the same request."""
        path, _, query = request.target.partition("?")
        said = self._said.get((request.method, path))
        if said is not None:
            return said
        try:
            if path in self._scripts:
                return self._spoken(path, request)
            if path == "/v1/embeddings":
                return self._plan_embeddings(request)
            return self._anything(request.method, query)
        except (WrongAskError, InputError) as exc:
            voice = self._scripts[path if path in self._scripts else "/v1/completions"].voice
            return Fixed(answer_bytes(voice.error(str(exc), "invalid_request_error"), status=400))

    def _spoken(self, path: str, request: MockRequest) -> AnswerPlan:
        scripts = self._scripts[path]
        wanted = _object(request)
        is_ollama = path.startswith("/api/")
        limit = _ollama_limit(wanted) if is_ollama else _openai_limit(wanted)
        tokens = self._works.options.tokens
        asked = wanted.get("messages", wanted.get("prompt"))
        words = _lead_words(asked) if self._works.options.lead else WORDS
        # What a lead has no more words for is not said again.
        tokens = tokens if words is WORDS else min(tokens, len(words))
        ask = Ask(
            model=_name(wanted, self._works.options.model),
            tokens=tokens if limit is None else min(limit, tokens),
            is_cut=limit is not None and limit <= tokens,
            prompt_tokens=_words(asked),
            streams=bool(wanted.get("stream", is_ollama)),
            with_usage=not is_ollama and _wants_usage(wanted),
            words=words,
        )
        prompt = AskedPrompt(hash(request.body), _text(asked).split())
        return (Streamed if ask.streams else Spoken)(self._works, scripts, ask, prompt)

    def _plan_embeddings(self, request: MockRequest) -> AnswerPlan:
        wanted = _object(request)
        given = wanted.get("input", "")
        many = given if isinstance(given, list) and not all(isinstance(one, int) for one in given) else [given]
        body = openai.embeddings(_name(wanted, self._works.options.model), len(many), sum(map(_words, many)), wanted)
        return Whole(self._works, answer_bytes(body), delay_ns=self._works.options.ttft_ns)

    def _anything(self, method: str, query: str) -> AnswerPlan:
        """Any other path: `ok`, or what ?delay=10ms&size=1000&status=503 asks for."""
        wanted = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        size = _number(wanted.get("size", "2"), 0, _MOST_SIZE)
        status = _number(wanted.get("status", "200"), 200, 599)
        body = (b"ok" * (size // 2 + 1))[:size]
        content = answer_bytes(body, status=status, kind=_TEXT, has_body=method != "HEAD")
        return Whole(self._works, content, delay_ns=duration_ns(wanted.get("delay", "0")))

    def _forget(self) -> bytes:
        self._works.truth.reset(perf_counter_ns())
        return b"{}"

    def _empty_cache(self) -> bytes:
        if self._works.cache is not None:
            self._works.cache.reset()
        return b"{}"

    def _cache_lines(self) -> list[str]:
        """Return the counters of the cache, under the names that vLLM has for them."""
        cache = self._works.cache
        if cache is None:
            return []
        return [
            "# TYPE vllm:prefix_cache_queries_total counter",
            f"vllm:prefix_cache_queries_total {cache.queried}",
            "# TYPE vllm:prefix_cache_hits_total counter",
            f"vllm:prefix_cache_hits_total {cache.hit}",
        ]

    def _metrics(self) -> bytes:
        truth = self._works.truth
        lines = [
            "# HELP prony_mock_requests_total Requests received.",
            "# TYPE prony_mock_requests_total counter",
            f"prony_mock_requests_total {truth.requests}",
            "# HELP prony_mock_tokens_total Tokens sent in answers.",
            "# TYPE prony_mock_tokens_total counter",
            f"prony_mock_tokens_total {truth.tokens}",
            "# HELP prony_mock_in_flight Requests in progress.",
            "# TYPE prony_mock_in_flight gauge",
            f"prony_mock_in_flight {truth.in_flight}",
            "# HELP prony_mock_errors_total Faults sent.",
            "# TYPE prony_mock_errors_total counter",
            *(f'prony_mock_errors_total{{kind="{kind}"}} {count}' for kind, count in truth.faults.items()),
            *self._cache_lines(),
        ]
        return ("\n".join(lines) + "\n").encode()


def _object(request: MockRequest) -> dict[str, Any]:
    if request.method != "POST":
        raise WrongAskError(f"use POST, not {request.method}")
    try:
        wanted = json.loads(request.body)
    except ValueError as exc:
        raise WrongAskError(f"the body is not JSON: {exc}") from exc
    if not isinstance(wanted, dict):
        raise WrongAskError("the body is not a JSON object")
    return wanted


def _name(wanted: dict[str, Any], default: str) -> str:
    return str(wanted.get("model") or default)


def _openai_limit(wanted: dict[str, Any]) -> int | None:
    given = wanted.get("max_completion_tokens", wanted.get("max_tokens"))
    if given is None:
        return None
    if not isinstance(given, int) or given < 1:
        raise WrongAskError(f"max_tokens must be a number from 1, not {given!r}")
    return given


def _ollama_limit(wanted: dict[str, Any]) -> int | None:
    options = wanted.get("options")
    given = options.get("num_predict") if isinstance(options, dict) else None
    return given if isinstance(given, int) and given > 0 else None  # -1 and -2 are no limit


def _wants_usage(wanted: dict[str, Any]) -> bool:
    options = wanted.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _words(given: Any) -> int:
    """Return how many words stand in a prompt, a list of them, messages or their parts; a number is a token."""
    if isinstance(given, str):
        return len(given.split())
    if isinstance(given, int):
        return 1
    if isinstance(given, dict):
        return _words(given.get("content", given.get("text")))
    return sum(map(_words, given)) if isinstance(given, list) else 0


def _text(given: Any) -> str:
    """Return the words of a prompt, a list of them, messages or their parts, with a space between."""
    if isinstance(given, dict):
        return _text(given.get("content", given.get("text")))
    return " ".join(map(_text, given)) if isinstance(given, list) else "" if given is None else str(given)


def _lead_words(asked: Any) -> tuple[str, ...]:
    """Return the words of what is asked about: what follows a colon and a blank line in the last message, or all."""
    text = _text(asked[-1] if isinstance(asked, list) and asked else asked)
    words = tuple((text.partition(":\n\n")[2] or text).split())
    return words or WORDS


def _number(text: str, least: int, most: int) -> int:
    if text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most:
        return int(text)
    raise WrongAskError(f"{text!r} is not a number from {least} to {most}")
