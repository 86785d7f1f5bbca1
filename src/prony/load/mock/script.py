"""Build the chunks of the mock server's answers, cached for requests that ask alike.

A stream's events differ between requests only in their beginning (id, time, model): the lead. A unit is what leaves at
one instant, as the pieces that the lead joins, in HTTP's chunked coding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

from prony.load.mock.start import MockOptions

Unit = tuple[bytes, ...]

LAST_CHUNK = b"0\r\n\r\n"
# Some are not ASCII, so that a read can end within a character. One word is one token.
WORDS = (
    "the", "brake", "holds", "the", "wheel", "and", "tells", "what", "an", "engine", "really", "gives", "naïve",
    "guesses", "über", "power", "漢字", "данные", "weigh", "nothing", "here", "only", "torque", "counts", "☕",
    "breaks", "are", "measured", "too", "says", "Gaspard", "🙂",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for. `tokens` are those of the answer; `is_cut`: the request's own limit decided."""

    model: str
    tokens: int
    is_cut: bool
    prompt_tokens: int
    streams: bool
    with_usage: bool = False
    cached_tokens: int | None = None  # of the prompt's; None where there is no cache
    words: tuple[str, ...] = WORDS  # of the answer, from the first again where they are fewer


@dataclass(frozen=True, slots=True)
class Piece:
    """The tokens of one chunk; `is_first` and `is_last` of their channel."""

    text: str
    is_reasoning: bool
    is_first: bool
    is_last: bool


class Voice(Protocol):
    """How one API says tokens: each event is the lead and what the methods return."""

    content_type: ClassVar[bytes]
    reasons: ClassVar[bool]  # does it have a channel for reasoning?

    def lead(self, ask: Ask, number: int) -> bytes: ...

    def opening(self, ask: Ask) -> Sequence[bytes]:
        """Return the events that leave with the first token, before it."""

    def token(self, piece: Piece, ask: Ask) -> bytes: ...

    def closing(self, ask: Ask) -> Sequence[bytes]:
        """Return the events that leave with the last token, after it."""

    def terminator(self) -> bytes:
        """Return what ends the stream, without the lead; nothing where the last event does."""

    def garbage(self) -> bytes:
        """Return an event that is none of the API."""

    def whole(self, ask: Ask, number: int) -> bytes:
        """Return the answer that is not streamed."""

    def error(self, message: str, kind: str) -> bytes:
        """Return the body of a refusal."""


def script_text(first: int, count: int, words: Sequence[str] = WORDS) -> str:
    """Return so many tokens from the endless text, each with the space before it."""
    size = len(words)
    return "".join(f" {words[index % size]}" for index in range(first, first + count))


def _count_reasoning(tokens: int, voice: Voice, options: MockOptions) -> int:
    return min(options.reasoning, tokens) if voice.reasons else 0


def _chunk_count(tokens: int, voice: Voice, options: MockOptions) -> int:
    """Return in how many chunks so many tokens come."""
    reasoning, size = _count_reasoning(tokens, voice, options), options.tokens_per_chunk
    return -(-reasoning // size) - (-(tokens - reasoning) // size)


def spans_ns(tokens: int, voice: Voice, options: MockOptions) -> tuple[int, int]:
    """Return how long an answer takes by the schedule: to its first chunk, and from there to its last."""
    gaps = _chunk_count(tokens, voice, options) - 1
    return options.ttft_ns, gaps * options.itl_ns + (options.stall_ns if gaps else 0)


def _piece(index: int, ask: Ask, voice: Voice, options: MockOptions) -> Piece:
    """Return one chunk of an answer: reasoning comes first, and no chunk holds both."""
    tokens = ask.tokens
    end, size = _count_reasoning(tokens, voice, options), options.tokens_per_chunk
    begin = 0
    is_reasoning = index * size < end
    if not is_reasoning:
        index -= -(-end // size)
        begin, end = end, tokens
    first = begin + index * size
    last = min(first + size, end)
    return Piece(script_text(first, last - first, ask.words), is_reasoning, index == 0, last == end)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def unit(rests: Sequence[bytes], lead_size: int) -> Unit:
    """Return events as pieces that a lead of that size joins, each event a chunk of its own."""
    sizes = [b"%x\r\n" % (lead_size + len(rest)) for rest in rests]
    between = [rest + b"\r\n" + size for rest, size in zip(rests, sizes[1:], strict=False)]
    return (sizes[0], *between, rests[-1] + b"\r\n")


def head(content_type: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: " + content_type + b"\r\nCache-Control: no-cache\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )


class AnswerScripts:
    """What one voice says, chunk by chunk, for leads of any size; kept, because most requests ask alike."""

    def __init__(self, voice: Voice, options: MockOptions) -> None:
        self.voice = voice
        self._options = options
        self.head = head(voice.content_type)
        self.garbage = chunk(voice.garbage())
        terminator = voice.terminator()
        self.terminator = (chunk(terminator) if terminator else b"") + LAST_CHUNK
        self._longest = lru_cache(maxsize=16)(self._all)
        self._some_units = lru_cache(maxsize=32)(self._units)
        self._some_run = lru_cache(maxsize=32)(self._run)

    def units(self, ask: Ask, lead_size: int) -> tuple[Unit, ...]:
        """Return what leaves at each instant; the ending is apart."""
        return self._some_units(_plain(ask), lead_size)

    def run(self, ask: Ask, lead_size: int) -> Unit:
        """Return the head and all units as one, for who writes them at once."""
        return self._some_run(_plain(ask), lead_size)

    def ending(self, ask: Ask, lead_size: int) -> Unit:
        """Return what leaves with the last chunk, before the terminator."""
        return unit(self.voice.closing(ask), lead_size)

    def _units(self, ask: Ask, lead_size: int) -> tuple[Unit, ...]:
        count = _chunk_count(ask.tokens, self.voice, self._options)
        last = self._unit(count - 1, ask, lead_size)
        if ask.words is not WORDS:
            return (*(self._unit(index, ask, lead_size) for index in range(count - 1)), last)
        # A shorter answer is the beginning of the longest; only its last chunk may differ.
        return (*self._longest(ask.with_usage, lead_size)[: count - 1], last)

    def _all(self, with_usage: bool, lead_size: int) -> tuple[Unit, ...]:
        ask = Ask("", self._options.tokens, False, 0, True, with_usage)
        count = _chunk_count(ask.tokens, self.voice, self._options)
        return tuple(self._unit(index, ask, lead_size) for index in range(count))

    def _unit(self, index: int, ask: Ask, lead_size: int) -> Unit:
        rest = self.voice.token(_piece(index, ask, self.voice, self._options), ask)
        return unit([rest] if index else [*self.voice.opening(ask), rest], lead_size)

    def _run(self, ask: Ask, lead_size: int) -> Unit:
        found = [[self.head]]
        for first, *others in self._units(ask, lead_size):
            found[-1].append(first)
            found.extend([other] for other in others)
        return tuple(b"".join(parts) for parts in found)


def _plain(ask: Ask) -> Ask:
    """Return what of a request its chunks depend on; the rest is in the lead and in the ending."""
    return Ask("", ask.tokens, False, 0, True, ask.with_usage, words=ask.words)
