"""Serve a language model of an engine by OpenAI's completion APIs, under the interpreter of that engine.

Requests are answered one after the other, greedily. It is a small server for measuring an engine behind an address:
nothing is batched and nothing cached.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from prony.errors import InputError, PronyError
from prony.kinds.llm.child.quality import log_probabilities
from prony.ports.llm import LlmOptions, LlmSession, empty_cache

_CONTEXT = 4096  # of models that do not tell theirs
_PLAIN_TOKENS = 16  # OpenAI's own default of a completion
_MOST_BYTES = 32 * 2**20
_MARGIN = 2
_CHAT, _PLAIN = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True)
class AskedText:
    """What one request asks: its ids, how many tokens may come back, and in which way."""

    ids: list[int]
    most: int
    is_chat: bool
    is_streamed: bool = False
    wants_usage: bool = False
    goes_on: bool = False
    echoes: bool = False


@dataclass
class ServedModel:
    """The model, which one request uses at a time."""

    name: str
    session: LlmSession
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.about = self.session.facts()
        self.context = self.about.context or _CONTEXT
        self.ends = self.session.end_ids()

    def read(self, body: Mapping[str, Any], *, is_chat: bool) -> AskedText:
        """Return what a request's body asks.

        Raises:
            InputError: It asks for what this server does not do, or for more than the model was made for.
        """
        if float(body.get("temperature") or 0) != 0 or int(body.get("n") or 1) != 1:
            raise InputError(
                "this server only supports temperature 0 and n 1", hint="send temperature 0 and n 1, or leave them out"
            )
        with self.lock:
            ids = self._encode(body, is_chat=is_chat)
        room = self.context - len(ids) - _MARGIN
        given = body.get("max_tokens", body.get("max_completion_tokens"))
        most = int(given) if given is not None else min(room, self.context if is_chat else _PLAIN_TOKENS)
        if not ids or most < 0 or most > room:
            raise InputError(
                f"the prompt of {len(ids)} tokens and its answer exceed the model's context of {self.context}",
                hint="send a shorter prompt, or ask for fewer tokens with max_tokens",
            )
        options = body.get("stream_options") or {}
        return AskedText(
            ids, most, is_chat, is_streamed=bool(body.get("stream")), wants_usage=bool(options.get("include_usage")),
            goes_on=bool(body.get("ignore_eos")), echoes=bool(body.get("echo")) and body.get("logprobs") is not None,
        )  # fmt: skip

    def _encode(self, body: Mapping[str, Any], *, is_chat: bool) -> list[int]:
        if is_chat:
            return self.session.encode_prompt(body["messages"]).ids
        prompt = body["prompt"]
        if isinstance(prompt, list) and all(isinstance(one, int) for one in prompt):
            return list(prompt)
        if not isinstance(prompt, str):
            raise InputError("prompt must be one text or a list of token ids", hint="send one request for each prompt")
        return self.session.tokenize(prompt)

    def answer(self, asked: AskedText) -> Iterator[int]:
        """Yield the ids of an answer as they come; the end mark is none of them."""
        with self.lock:
            empty_cache(self.session)
            ids, ends = np.asarray([asked.ids], np.int32), frozenset() if asked.goes_on else self.ends
            for _ in range(asked.most):
                token = int(self.session.prefill(ids)[0])
                if token in ends:
                    return
                yield token
                ids = np.array([[token]], np.int32)

    def pieces(self, ids: Iterator[int]) -> Iterator[tuple[str, int]]:
        """Yield the text that each id adds; a character of several ids comes with the last of them."""
        kept: list[int] = []
        begin = shown = 0
        for one in ids:
            kept.append(one)
            before, text = self._text(kept[begin:shown]), self._text(kept[begin:])
            is_whole = len(text) > len(before) and not text.endswith("\ufffd")
            yield (text[len(before) :] if is_whole else ""), len(kept)
            if is_whole:
                begin, shown = shown, len(kept)

    def _text(self, ids: Sequence[int]) -> str:
        return self.session.detokenize(ids) if ids else ""

    def log_likelihoods(self, ids: Sequence[int]) -> list[float | None]:
        """Return of each token of a prompt how likely it was, as a logarithm; nothing is known of the first."""
        if len(ids) < 2:
            return [None] * len(ids)
        with self.lock:
            logs = log_probabilities(self.session.logits(np.asarray(ids[:-1], np.int32)))
        return [None, *(float(row[token]) for row, token in zip(logs, ids[1:], strict=True))]


class CompletionHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: ClassVar[ServedModel]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        """Answer who is here."""
        about = self.model.about
        facts = {"id": self.model.name, "object": "model", "architecture": about.architecture,
                 "max_model_len": self.model.context}  # fmt: skip
        answers: dict[str, dict[str, Any]] = {
            "/health": {"status": "ok"},
            "/v1/models": {"object": "list", "data": [facts]},
        }
        if self.path in answers:
            self._send(HTTPStatus.OK, answers[self.path])
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"not found: {self.path}")

    def do_POST(self) -> None:
        """Answer a prompt."""
        size = int(self.headers.get("Content-Length") or 0)
        self.close_connection = size > _MOST_BYTES
        data = self.rfile.read(min(size, _MOST_BYTES))
        if self.path not in (_CHAT, _PLAIN):
            self._refuse(HTTPStatus.NOT_FOUND, f"not found: {self.path}")
            return
        try:
            asked = self.model.read(json.loads(data), is_chat=self.path == _CHAT)
        except PronyError as exc:
            self._refuse(HTTPStatus.BAD_REQUEST, exc.message)
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the request does not follow OpenAI's format: {exc!r}")
        else:
            self._answer(asked)

    def _answer(self, asked: AskedText) -> None:
        try:
            if asked.is_streamed and not asked.echoes:
                self._stream(asked)
            else:
                self._send(HTTPStatus.OK, self._whole(asked))
        except PronyError as exc:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, exc.message)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked is gone, and with it what was being written

    def _stream(self, asked: AskedText) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = 0
        try:
            for piece, count in self.model.pieces(self.model.answer(asked)):  # noqa: B007 - the last count is used
                if piece:
                    self._event(self._chunk(asked, {"text": piece}, None))
        except PronyError as exc:  # the head of the answer is sent: only an event can tell
            self._event({"error": {"message": exc.message}})
            self._write_chunk(b"")
            return
        self._event(self._chunk(asked, {"text": ""}, _finish(asked, count)))
        if asked.wants_usage:
            self._event({**self._head(asked, "chunk"), "choices": [], "usage": _usage(asked, count)})
        self._write_chunk(b"data: [DONE]\n\n")
        self._write_chunk(b"")

    def _whole(self, asked: AskedText) -> dict[str, Any]:
        found = list(self.model.pieces(self.model.answer(asked)))
        text, count = "".join(piece for piece, _ in found), len(found)
        said = {"message": {"role": "assistant", "content": text}} if asked.is_chat else {"text": text}
        choice = {"index": 0, **said, "finish_reason": _finish(asked, count)}
        if asked.echoes:
            choice["logprobs"] = {"token_logprobs": self.model.log_likelihoods(asked.ids)}
        return {**self._head(asked, "whole"), "choices": [choice], "usage": _usage(asked, count)}

    def _chunk(self, asked: AskedText, said: Mapping[str, str], finish: str | None) -> dict[str, Any]:
        words = {"delta": {"content": said["text"]} if said["text"] else {}} if asked.is_chat else dict(said)
        return {**self._head(asked, "chunk"), "choices": [{"index": 0, **words, "finish_reason": finish}]}

    def _head(self, asked: AskedText, form: str) -> dict[str, Any]:
        kind = (
            ("chat.completion" if form == "whole" else "chat.completion.chunk") if asked.is_chat else "text_completion"
        )
        return {"id": "cmpl-0", "object": kind, "created": int(time.time()), "model": self.model.name}

    def _event(self, document: Mapping[str, Any]) -> None:
        self._write_chunk(f"data: {json.dumps(document)}\n\n".encode())

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error", "code": int(status)}})

    def _send(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _finish(asked: AskedText, count: int) -> str:
    return "length" if count == asked.most else "stop"


def _usage(asked: AskedText, count: int) -> dict[str, Any]:
    read = len(asked.ids)
    return {"prompt_tokens": read, "completion_tokens": count, "total_tokens": read + count,
            "prompt_tokens_details": {"cached_tokens": 0}}  # fmt: skip


class CompletionServer(ThreadingHTTPServer):
    """Listens for whoever asks one model."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], model: ServedModel) -> None:
        super().__init__(address, type("Handler", (CompletionHandler,), {"model": model}))


def main(words: Sequence[str]) -> int:
    """Load the model, and serve it until the process is ended."""
    asked = argparse.ArgumentParser()
    asked.add_argument("engine", help="MODULE:CLASS")
    for name in ("model", "name", "host", "unit", "precision"):
        asked.add_argument(f"--{name}", required=True)
    for name in ("port", "threads"):
        asked.add_argument(f"--{name}", type=int, required=True)
    given = asked.parse_args(words)
    module, _, named = given.engine.partition(":")
    engine = getattr(import_module(module), named)()
    options = LlmOptions(unit=given.unit, threads=given.threads, precision=given.precision, context=_CONTEXT)
    try:
        session = engine.load_llm(given.model, options)
    except PronyError as exc:
        sys.stderr.write(f"{exc.message}\n{exc.hint}\n")
        return 1
    CompletionServer((given.host, given.port), ServedModel(given.name, session)).serve_forever()
    return 0
