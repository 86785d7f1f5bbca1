"""The seams of the load generator: what a request is, how its bytes are made, and what its reply was.

A driver speaks one protocol. It makes all bytes before the load begins (`prepare`) and looks at replies after it has
ended (`digest`); between the two only its wire works, which frames replies in the client processes and does nothing
else. A task says what is asked, where that is a matter of taste: prompts, conversations, data sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from prony.errors import InputError

if TYPE_CHECKING:
    import numpy as np

Stamps: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class Cause(IntEnum):
    """Why a request is no success; stored as its number, shown by its name."""

    OK = 0
    REFUSED = 1  # no connection could be made
    RESET = 2  # the connection broke before or within the reply
    TIMEOUT = 3
    TRUNCATED = 4  # the reply ended before its terminator
    MALFORMED = 5  # the reply is none of the protocol
    STATUS = 6  # the server said no
    CONTENT = 7  # the reply is whole, and not what was expected
    DROPPED = 8  # never sent: too many were in flight
    CUT = 9  # still in flight when the drain was over


class Keeps(IntEnum):
    """What a wire keeps of a reply for the digest."""

    NOTHING = 0  # status and size are enough
    REPLY = 1  # the bytes of the body, with the stamp of each read


@dataclass(frozen=True)
class Endpoint:
    """Where requests go: TCP, TLS, or a unix socket (`path`). `base` is what comes before a request's own path, `query`
    what goes with each. Of TLS: is the certificate checked (`verify`), is the name in it (`check_name`), and who
    vouches for it (`ca`, a file; else those whom the system trusts)?"""

    host: str = ""
    port: int = 0
    tls: bool = False
    path: str = ""
    base: str = ""
    user: str = ""
    password: str = ""
    database: str = ""
    query: str = ""
    verify: bool = True
    check_name: bool = True
    ca: str = ""


@dataclass(frozen=True)
class Salt:
    """Words in a prompt that each run replaces by others from `words`, all of one length and of one token each: so the
    text is new to a server that caches what prompts begin with, and neither its bytes nor its tokens are more.

    `text` is how they stand in the prompt, with a space between. `is_shared`: the same in all prompts of a run, because
    they begin alike on purpose."""

    text: str
    words: Sequence[str]
    is_shared: bool = False


@dataclass(frozen=True)
class Request:
    """`operation` names what kind it is, as in the metrics by operation; `after` is the request of the same session
    that must be answered first (multi-turn), None where there is none.
    `expected` and `about` are the driver's own, for its digest."""

    content: bytes
    operation: str = "request"
    after: int | None = None
    expected: Any = None
    about: Any = None
    items: int = 1  # what the throughput counts of it where no reply is kept: commands of a pipeline
    salts: Sequence[Salt] = ()  # those of its prompts, in the order in which they stand in the content


@dataclass(frozen=True)
class TaskItem:
    """What a prompt is about, and what its answer is held against when the run is over.

    A long text is asked about in several `parts`: the answers to all of them, in order, are the answer to the item.
    `left_out_words` of it stand in no prompt, because they did not fit.
    """

    name: str
    references: tuple[str, ...] = ()
    part: int = 0
    parts: int = 1
    left_out_words: int = 0


@dataclass(frozen=True)
class Prompt:
    """What a task asks an LLM: a text or a conversation, and how much may come back.

    `input_tokens` only where a tokenizer has counted them. `turns` > 1 in a session: `session` is equal among them.
    Where `window` is not 0, nothing is to be written: the tokens of the text itself are predicted, each from at most so
    many before it, and the answer is how likely they were (`format_likelihood`).
    """

    messages: tuple[Mapping[str, str], ...]
    max_tokens: int | None = None
    exact_tokens: bool = False  # ask the server to go on to max_tokens (ignore_eos, min_tokens) where it can
    input_tokens: int | None = None
    session: int | None = None
    expected: str | None = None
    salts: Sequence[Salt] = ()  # in the order in which they stand in the messages
    item: TaskItem | None = None  # of a task that scores answers
    window: int = 0


@dataclass(frozen=True)
class TextLikelihood:
    """How likely a text was: the sum over so many of its tokens, as a negative logarithm, and how long it is."""

    tokens: int
    text_bytes: int
    nat: float


_LIKELIHOOD = re.compile(r"([1-9][0-9]*) tokens of ([1-9][0-9]*) bytes: ([0-9.]+) nat")


def format_likelihood(found: TextLikelihood) -> str:
    """Return a likelihood as an answer is kept."""
    return f"{found.tokens} tokens of {found.text_bytes} bytes: {found.nat:.6f} nat"


def read_likelihood(answer: str) -> TextLikelihood:
    """Return the likelihood that a kept answer tells.

    Raises:
        InputError: It tells none: the text was answered, not predicted.
    """
    match = _LIKELIHOOD.fullmatch(answer)
    if match is None:
        raise InputError(f"this is no likelihood of a text: {answer[:80]!r}", hint="run the job again")
    return TextLikelihood(int(match[1]), int(match[2]), float(match[3]))


def describe_cuts(prompts: Sequence[Prompt]) -> dict[str, str]:
    """Say what of long texts stands in no prompt, and which are asked about in parts."""
    items = [prompt.item for prompt in prompts if prompt.item is not None]
    cut = [item for item in items if item.left_out_words]
    parts = {item.name for item in items if item.parts > 1}
    names = {item.name for item in items}
    found = {}
    if cut:
        words = sum(item.left_out_words for item in cut)
        found["cut"] = f"{len(cut)} of {len(names)} texts were too long: {words:,} words at their ends were left out"
    if parts:
        found["chunked"] = f"{len(parts)} of {len(names)} texts were asked about in parts"
    return found


@dataclass(frozen=True)
class Wants:
    """What a driver is to prepare. `count` is how many requests are sent at most, None where time decides: then
    requests are used again from the first."""

    endpoint: Endpoint
    options: Any  # an instance of the driver's Options
    seed: int
    count: int | None = None
    prompts: Sequence[Prompt] = ()
    scratch: Path = Path()
    base: Path = Path()  # what relative paths in the recipe are relative to


@dataclass(frozen=True)
class Prepared:
    """`wire` is `module:Class` of the load.wire.Wire that frames replies; `wire_options` go to it as they are (JSON).

    `notes` say what was made or found, as in the report: dataset size, server version, model name.
    `command`: it sends the requests itself, one run of it for each user, and there are none to make."""

    requests: Sequence[Request]
    wire: str
    wire_options: Mapping[str, Any] = field(default_factory=dict)
    keeps: Keeps = Keeps.NOTHING
    notes: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """A reply as the wire kept it: pieces of the body, and when each arrived (the kernel's stamp where it has one)."""

    status: int
    stamps_ns: Stamps
    sizes: Sequence[int]
    body: bytes


@dataclass(frozen=True)
class Digest:
    """What a reply was. Tokens are None where nobody counted them: characters and chunks are never called tokens.

    `token_ns` are the stamps of the pieces that carried tokens (any channel), in order;
    `content_ns` is the first that was an answer rather than reasoning."""

    cause: Cause = Cause.OK
    detail: str = ""
    input_tokens: int | None = None
    cached_tokens: int | None = None  # of the input tokens: those that the server had in its cache
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    token_ns: Stamps | None = None
    content_ns: int | None = None
    items: int = 1  # what the throughput counts: rows, vectors, objects
    quality: float | None = None  # recall, exact match: what the driver's page says
    text: str = ""
    finish: str = ""  # why the answer ended, as the server says it: `stop`, or `length` where it was cut


class Driver(Protocol):
    """Speaks one protocol. Made anew for each job, and for each start of a service: what it made at the last one is
    gone with that, and its `finish` is not called."""

    name: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]  # of endpoints: ("http", "https"), ("redis",)
    asks: ClassVar[bool]  # does it need prompts from a task?
    makes: ClassVar[bool]  # does `prepare` make at the endpoint what `finish` removes?
    Options: ClassVar[type[Any]]  # a Noun: what stands under workload.options

    def prepare(self, wants: Wants) -> Prepared:
        """Make every request; it may speak to the endpoint (tables, keys, collections), and clears up in `finish`.

        Args:
            wants: Where requests go, how many at most, and what the recipe's options say.

        Returns:
            The requests in the order in which they are sent, and the wire that frames their replies.
        """

    def digest(self, request: Request, reply: Reply) -> Digest:
        """Say what a reply was. Only called for whole replies of a wire that keeps them.

        Args:
            request: The request that was sent, as `prepare` made it.
            reply: What came back, with when each piece of it arrived.
        """

    def finish(self) -> None:
        """Remove what `prepare` made at the endpoint."""


@dataclass(frozen=True)
class CacheCounts:
    """What a server has counted since it began: tokens of prompts, and those of them that it had in its cache."""

    server: str
    queried_tokens: float
    hit_tokens: float


@runtime_checkable
class ControlsCache(Protocol):
    """What a driver may have besides, where the servers that it speaks to cache what prompts begin with. Both are asked
    between runs, after `prepare`."""

    def reset_cache(self) -> str:
        """Empty the server's cache.

        Returns:
            What was asked for it, as in `POST /flush_cache`.

        Raises:
            PronyError: The server offers no such thing, or did not do it.
        """

    def read_cache_counts(self) -> CacheCounts | None:
        """Return what the server has counted; None where it does not tell."""


class Task(Protocol):
    """Says what is asked of an LLM."""

    name: ClassVar[str]
    Options: ClassVar[type[Any]]

    def prompts(
        self, options: Any, *, count: int, seeds: Mapping[str, int], base: Path, lengths: Stamps | None = None
    ) -> Sequence[Prompt]:
        """Return so many prompts, the same for the same seeds; fewer where a set ends.

        Args:
            options: An instance of the task's Options.
            count: How many prompts are wanted.
            seeds: A seed for what is asked (`prompts`) and one for how long it is (`lengths`).
            base: What relative paths in the recipe are relative to.
            lengths: Those of a trace: a row of input and output tokens for each prompt; 0 or less where not known.
        """


@runtime_checkable
class PredictsTexts(Protocol):
    """What a task has besides whose texts are predicted and not answered, and a driver that can ask for that."""

    predicts: ClassVar[bool]


@dataclass(frozen=True)
class ItemAnswer:
    """The whole answer to one item, and the references that it is held against."""

    item: str
    output: str
    references: tuple[str, ...]


@runtime_checkable
class ScoresAnswers(Protocol):
    """What a task has besides whose answers are kept, and scored when the run is over: here, on a server, or later."""

    def score(self, options: Any, answers: Sequence[ItemAnswer]) -> Mapping[str, Sequence[float]]:
        """Return by metric of the glossary one number for each answer; an empty answer has one too.

        Args:
            options: An instance of the task's Options, which inherit `prony.model.answer.ScoringOptions`.
            answers: Those of one run or of several.
        """

    def scoring(self, options: Any) -> str:
        """Return how scores are made, as in a report: `ROUGE F-measure, stem=porter`."""
