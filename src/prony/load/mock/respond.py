"""Write the mock server's answers at the scheduled instants, with faults, and record when each was really written.

Faults are drawn from a seed, one decision per request.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter_ns
from typing import NamedTuple

from prony.load.mock.connection import MockConnection, answer_bytes
from prony.load.mock.ground_truth import Truth
from prony.load.mock.prefix_cache import PrefixCache
from prony.load.mock.script import LAST_CHUNK, AnswerScripts, Ask, Unit, chunk, spans_ns
from prony.load.mock.start import MockOptions
from prony.load.mock.timer import Wheel

# In the order in which one number from 0 to 1 is shared out among them.
KINDS = ("errors", "reset", "truncate", "garbage")
_MULTIBYTE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")


class Faults:
    """Draws once for each request, and once for each connection from a seed of its own."""

    def __init__(self, options: MockOptions) -> None:
        self._edges: list[tuple[float, str]] = []
        edge = 0.0
        for kind in KINDS:
            edge += getattr(options, kind)
            if getattr(options, kind):
                self._edges.append((edge, kind))
        self.any = bool(self._edges)
        self._refuse = options.refuse
        self._requests = random.Random(options.seed)
        self._lines = random.Random(f"lines {options.seed}")

    def draw(self) -> str:
        """Return the fault of the next request; nothing where it has none."""
        if not self.any:
            return ""
        drawn = self._requests.random()
        return next((kind for edge, kind in self._edges if drawn < edge), "")

    def refuses(self) -> bool:
        """Say whether the next connection is closed at once."""
        return self._refuse > 0 and self._lines.random() < self._refuse


def halves(coded: bytes) -> list[bytes]:
    """Return chunked content as writes in which every chunk has become two, cut within a character if there is one."""
    found: list[bytes] = []
    at = 0
    while at < len(coded):
        begin = coded.index(b"\r\n", at) + 2
        size = int(coded[at : begin - 2], 16)
        content = coded[begin : begin + size]
        cut = _cut(content)
        found += [chunk(part) for part in (content[:cut], content[cut:]) if part] or [LAST_CHUNK]
        at = begin + size + 2
    return found


def _cut(content: bytes) -> int:
    match = _MULTIBYTE.search(content)
    return match.start() + 1 if match else len(content) // 2


# What it takes to write a chunk, with some room.
_SLOT_NS = 12_000
_FAULT = b"this fault was requested"


class AskedPrompt(NamedTuple):
    """What tells one request to an LLM from another: a number for its whole body, and the words of its prompt."""

    body: int
    words: Sequence[str]


@dataclass
class Works:
    """What every plan needs to be carried out."""

    options: MockOptions
    truth: Truth
    wheel: Wheel
    faults: Faults
    cache: PrefixCache | None = None
    numbers: count[int] = field(default_factory=count)
    _slot_ns: int = 0

    def answer_for(self, prompt: AskedPrompt, ask: Ask) -> Ask:
        """Note what is asked, and return it with what the cache has of it."""
        self.truth.note_body(prompt.body)
        return ask if self.cache is None else replace(ask, cached_tokens=self.cache.take(prompt.words))

    def ttft_ns(self, ask: Ask) -> int:
        """Return when its first token is due: what the cache has takes no time."""
        share = (ask.cached_tokens or 0) / ask.prompt_tokens if ask.prompt_tokens else 0.0
        return round(self.options.ttft_ns * (1 - share))

    def slot(self, at_ns: int) -> int:
        """Return where the schedule of a stream begins that came at this instant.

        Streams that came together would be due together for ever, and all but one be late: each gets a place of its
        own, as long as a gap between chunks has room."""
        self._slot_ns = min(max(at_ns, self._slot_ns + _SLOT_NS), at_ns + self.options.itl_ns)
        return self._slot_ns


class Later:
    """One answer at one instant."""

    __slots__ = ("_bytes", "_line", "_truth", "fault")

    def __init__(self, truth: Truth, line: MockConnection, content: bytes, fault: str) -> None:
        self._truth = truth
        self._line = line
        self._bytes = content
        self.fault = fault

    def step(self, due_ns: int, now_ns: int) -> int:
        self._truth.late.append(now_ns - due_ns)
        _write_whole(self._line, self._bytes, self.fault)
        return 0

    def end(self, now_ns: int) -> None:
        self._truth.note_end(now_ns)
        self._line.done()


def _write_whole(line: MockConnection, content: bytes, fault: str) -> None:
    """Write an answer that has a length; a fault breaks it in its middle."""
    if line.closed:
        return
    if fault in ("reset", "truncate"):
        body_at = content.index(b"\r\n\r\n") + 4
        line.write(content[: (body_at + len(content)) // 2])
        line.reset() if fault == "reset" else line.drop()
    else:
        line.write(content)


class Whole:
    """The plan of an answer with a length: `delay_ns` after the request, at once where that is 0."""

    tokens = 0  # of the answer, where it is an LLM's

    def __init__(self, works: Works, content: bytes, *, delay_ns: int = 0, refusal: bytes = b"") -> None:
        self._works = works
        self._bytes = content
        self._delay_ns = delay_ns
        self._refusal = refusal or answer_bytes(b'{"error":"%b"}' % _FAULT, status=500)

    def begin(self, line: MockConnection, at_ns: int) -> None:
        works = self._works
        fault = works.faults.draw() if works.faults.any else ""
        if fault:
            works.truth.fault(fault)
        if fault != "errors":
            works.truth.tokens += self.tokens
        if self._delay_ns and fault != "errors":
            works.truth.began(at_ns)
            line.busy = True
            works.wheel.at(at_ns + self._delay_ns, Later(works.truth, line, self._content(fault), fault))
            return
        works.truth.arrivals.append(at_ns)
        if fault:
            _write_whole(line, self._content(fault), fault)
        else:
            line.write(self._bytes)

    def _content(self, fault: str) -> bytes:
        if fault == "errors":
            return self._refusal
        if fault == "garbage":
            at = self._bytes.index(b"\r\n\r\n") + 4
            return self._bytes[:at] + b"~" * (len(self._bytes) - at)
        return self._bytes


class Spoken:
    """The plan of an LLM's answer that is not streamed: it comes whole when its last token would."""

    def __init__(self, works: Works, scripts: AnswerScripts, ask: Ask, prompt: AskedPrompt) -> None:
        self._works = works
        self._scripts = scripts
        self._ask = ask
        self._prompt = prompt
        self._rest_ns = spans_ns(ask.tokens, scripts.voice, works.options)[1]
        self._refusal = refuse_request(scripts)

    def begin(self, line: MockConnection, at_ns: int) -> None:
        ask = self._works.answer_for(self._prompt, self._ask)
        body = self._scripts.voice.whole(ask, next(self._works.numbers))
        delay_ns = self._works.ttft_ns(ask) + self._rest_ns
        whole = Whole(self._works, answer_bytes(body), delay_ns=delay_ns, refusal=self._refusal)
        whole.tokens = ask.tokens
        whole.begin(line, at_ns)


def refuse_request(scripts: AnswerScripts) -> bytes:
    return answer_bytes(scripts.voice.error(_FAULT.decode(), "server_error"), status=500)


class Streamed:
    """The plan of a stream: chunk i leaves at the request's arrival + TTFT + i gaps, whatever happened before."""

    def __init__(self, works: Works, scripts: AnswerScripts, ask: Ask, prompt: AskedPrompt) -> None:
        self._works = works
        self._scripts = scripts
        self._ask = ask
        self._prompt = prompt
        self._size = size = len(scripts.voice.lead(ask, 0))
        is_burst = not (works.options.is_paced or works.options.split)
        self._units = scripts.units(ask, size)
        self._run = scripts.run(ask, size) if is_burst else ()
        self._ending = scripts.ending(ask, size)
        self._refusal = refuse_request(scripts)

    def begin(self, line: MockConnection, at_ns: int) -> None:
        works = self._works
        lead = self._scripts.voice.lead(self._ask, next(works.numbers))
        ask = works.answer_for(self._prompt, self._ask)
        ending = self._ending if ask is self._ask else self._scripts.ending(ask, self._size)
        fault = works.faults.draw() if works.faults.any else ""
        if fault:
            works.truth.fault(fault)
        if fault == "errors":
            works.truth.arrivals.append(at_ns)
            line.write(self._refusal)
        elif self._run and not fault:
            self._burst(line, at_ns, lead, ending)
        else:
            play = self._play(line, at_ns, lead, ending, fault)
            self._pace(line, at_ns, play, works.ttft_ns(ask))

    def _burst(self, line: MockConnection, at_ns: int, lead: bytes, ending: Unit) -> None:
        truth = self._works.truth
        truth.arrivals.append(at_ns)
        truth.streams += 1
        truth.chunks += len(self._units)
        truth.tokens += self._ask.tokens
        late_ns = perf_counter_ns() - at_ns
        truth.late.append(late_ns)
        truth.ttft.append(late_ns)
        line.write(lead.join(self._run) + lead.join(ending) + self._scripts.terminator)

    def _pace(self, line: MockConnection, at_ns: int, play: Play, ttft_ns: int) -> None:
        works = self._works
        works.truth.began(at_ns)
        works.truth.streams += 1
        line.busy = True
        if works.options.early_headers:
            line.write(self._scripts.head)
        works.wheel.at(works.slot(at_ns) + ttft_ns, play)

    def _play(self, line: MockConnection, at_ns: int, lead: bytes, last: Unit, fault: str) -> Play:
        units = self._units
        ending = lead.join(last) + self._scripts.terminator
        half = len(units) // 2
        if fault == "garbage":
            # A unit of one piece: the lead has nothing to join.
            units = (*units[:half], (self._scripts.garbage,), *units[half + 1 :])
        elif fault:
            units = units[: max(1, half)]
            ending = LAST_CHUNK if fault == "truncate" else b""
        play = Play(self._works, line, at_ns)
        play.lead, play.units, play.ending = lead, units, ending
        play.head = b"" if self._works.options.early_headers else self._scripts.head
        play.stall_at = half or -1
        play.tokens_each = self._ask.tokens / len(self._units)
        play.breaks = fault == "reset"
        return play


class Play:
    """One stream on its way. What is public is set before its first step."""

    __slots__ = (
        "_index", "_itl_ns", "_line", "_split", "_stall_ns", "_truth", "_written_ns", "breaks", "ending", "head",
        "lead", "stall_at", "tokens_each", "units",
    )  # fmt: skip

    head: bytes
    lead: bytes
    units: tuple[Unit, ...]
    ending: bytes
    stall_at: int
    tokens_each: float
    breaks: bool

    def __init__(self, works: Works, line: MockConnection, at_ns: int) -> None:
        self._truth = works.truth
        self._line = line
        self._itl_ns = works.options.itl_ns
        self._stall_ns = works.options.stall_ns
        self._split = works.options.split
        self._index = 0
        self._written_ns = at_ns

    def step(self, due_ns: int, now_ns: int) -> int:
        line = self._line
        if line.closed:
            return 0
        index = self._index
        truth = self._truth
        data = self.lead.join(self.units[index])
        if index:
            truth.gaps.append(now_ns - self._written_ns)
        else:
            truth.ttft.append(now_ns - self._written_ns)
            data = self._add_head(data)
        truth.late.append(now_ns - due_ns)
        self._written_ns = now_ns
        self._index = index = index + 1
        following = due_ns + self._itl_ns
        if index == self.stall_at:
            following += self._stall_ns
        if following > now_ns and index < len(self.units) and not self._split:
            line.write(data)
            return following
        return self._more(data, following, now_ns)

    def _add_head(self, data: bytes) -> bytes:
        """Return the first chunk with the head before it; the head alone is never split."""
        if not self._split:
            return self.head + data
        self._line.write(self.head)
        return data

    def _more(self, data: bytes, following: int, now_ns: int) -> int:
        """Write what else is due by now in one go, and the ending after the last."""
        count = len(self.units)
        parts = [data]
        while self._index < count and following <= now_ns:
            parts.append(self.lead.join(self.units[self._index]))
            self._truth.late.append(now_ns - following)
            self._truth.gaps.append(0)
            self._index += 1
            following += self._itl_ns + (self._stall_ns if self._index == self.stall_at else 0)
        is_over = self._index == count
        if is_over:
            parts.append(self.ending)
        whole = b"".join(parts)
        for part in halves(whole) if self._split else (whole,):
            self._line.write(part)
        return 0 if is_over else following

    def end(self, now_ns: int) -> None:
        self._truth.chunks += self._index
        self._truth.tokens += round(self._index * self.tokens_each)
        self._truth.note_end(now_ns)
        if self.breaks:
            self._line.reset()
        self._line.done()
