"""Build the digest of a generated reply from its pieces of text, reasoning and tool calls, and when each arrived."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from prony.ports.driver import Cause, Digest, Reply, Request, Stamps


def arrivals_ns(reply: Reply, ends: Sequence[int]) -> Stamps | None:
    """Return, for each count of bytes, the stamp of the read that brought the last of them; None without stamps."""
    count = min(len(reply.sizes), len(reply.stamps_ns))
    if not count:
        return None
    reached = np.cumsum(np.asarray(reply.sizes[:count], dtype=np.int64))
    piece = np.searchsorted(reached, np.asarray(ends, dtype=np.int64), side="left")
    stamps: Stamps = np.asarray(reply.stamps_ns, dtype=np.int64)[np.minimum(piece, count - 1)]
    return stamps


LONGEST_DETAIL = 300
Counts = Callable[[str], int]


class Said(NamedTuple):
    """What one event carried: of the answer (text, refusal, calls of tools), and of the reasoning before it."""

    answer: str = ""
    reasoning: str = ""


@dataclass(frozen=True)
class Asked:
    """What a driver remembers of a request for its digest."""

    streamed: bool = True
    input_tokens: int | None = None  # as a tokenizer counted them, where there was one
    text_bytes: int = 0  # of a text that is only predicted, and not answered


@dataclass
class Answer:
    """What has been heard so far. `ends` are the places in the body where events with tokens were complete."""

    is_whole: bool = False
    cause: Cause = Cause.OK
    detail: str = ""
    answers: list[str] = field(default_factory=list)
    reasonings: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    answer_end: int | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish: str = ""

    def hear(self, said: Said, end: int) -> None:
        answer, reasoning = said
        if answer:
            self.answers.append(answer)
            if self.answer_end is None:
                self.answer_end = end
        if reasoning:
            self.reasonings.append(reasoning)
        if answer or reasoning:
            self.ends.append(end)

    def hear_texts(self, texts: Sequence[str], ends: Sequence[int]) -> None:
        """Hear the answer of many events at once."""
        if "" in texts:
            for text, end in zip(texts, ends, strict=True):
                self.hear(Said(text), end)
            return
        self.answers += texts
        self.ends += ends
        if self.answer_end is None:
            self.answer_end = ends[0]

    def fail(self, cause: Cause, detail: str) -> None:
        """Say what is wrong with it; the first that was said stays."""
        if self.cause is Cause.OK:
            self.cause = cause
            self.detail = detail[:LONGEST_DETAIL]

    def digest(self, request: Request, reply: Reply, count: Counts | None) -> Digest:
        """Return the digest; `count` counts tokens where the server has not."""
        asked = request.about if isinstance(request.about, Asked) else Asked()
        if not self.is_whole:
            self.fail(Cause.TRUNCATED, "the reply ended before its end marker")
        if not self.ends:
            self.fail(Cause.CONTENT, "the answer is empty")
        text = _mend_surrogates("".join(self.answers))
        stamps = arrivals_ns(reply, self.ends) if asked.streamed and self.ends else None
        first = None if self.answer_end is None or stamps is None else self.ends.index(self.answer_end)
        return Digest(
            cause=self.cause,
            detail=self.detail,
            input_tokens=self.input_tokens or asked.input_tokens,
            cached_tokens=self.cached_tokens,
            output_tokens=self._output_tokens(text, count),
            reasoning_tokens=self.reasoning_tokens,
            token_ns=stamps,
            content_ns=None if first is None or stamps is None else int(stamps[first]),
            quality=_quality(request.expected, text) if self.cause is Cause.OK else None,
            text=text,
            finish=self.finish,
        )

    def _output_tokens(self, text: str, count: Counts | None) -> int | None:
        if self.output_tokens or not self.ends:
            return self.output_tokens
        # A server that reports nothing, or 0 beside a text, has not counted.
        return count(_mend_surrogates("".join(self.reasonings)) + text) if count is not None else None


def _quality(expected: Any, text: str) -> float | None:
    """Return whether the answer is exactly the expected one, up to space around it; None where none is expected."""
    return float(text.strip() == expected.strip()) if isinstance(expected, str) else None


def _mend_surrogates(text: str) -> str:
    """Return text that can be encoded: halves of a surrogate pair that came in two events become one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def parse_object(data: bytes) -> dict[str, Any] | None:
    """Return a JSON object, or None where the bytes are none."""
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_count(value: Any) -> int | None:
    """Return a count that a server reported, None where it is no count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def complaint(value: dict[str, Any]) -> str | None:
    """Return what an error object says, None where there is none. Servers write it in several ways."""
    error = value.get("error")
    if error is None and value.get("object") == "error":
        error = value
    if not error:
        return None
    if isinstance(error, dict):
        error = error.get("message") or error
    return error if isinstance(error, str) else json.dumps(error)


def digest_refusal(reply: Reply) -> Digest:
    """Return the digest of a reply whose status says no."""
    value = parse_object(reply.body)
    said = None if value is None else complaint(value)
    text = reply.body[: LONGEST_DETAIL * 4].decode("utf-8", "replace") if said is None else said
    return Digest(cause=Cause.STATUS, detail=f"{reply.status}: {text}"[:LONGEST_DETAIL])
