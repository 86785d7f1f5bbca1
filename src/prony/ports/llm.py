"""The seam for large language models: what an engine must do so that it reads prompts and writes tokens under a clock.

An engine that hosts such models is found like any other (`ports/engine.py`), in the same process of its own; beside
`load` it has `load_llm`. Token ids come from outside and are the same for every engine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from prony.errors import InputError, PronyError, SutError
from prony.ports.engine import MEMORY_HINT, Array, Effect, is_memory_shortage

# Where in PyTorch's source a check failed, which says nothing to who reads it.
_PLACE = re.compile(r"^\[enforce fail at [^]]*\] (\w+\. )?")


@dataclass(frozen=True)
class LlmOptions:
    """How to load a language model: `context` tokens must fit into the cache of each of `batch` sequences.

    `cache` is a folder in which an engine may keep what it makes of a model's files; empty: none is kept.
    """

    unit: str = "cpu"
    threads: int = 1
    precision: str = "default"
    batch: int = 1
    context: int = 512
    kv_type: str = "default"
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    cache: str = ""


@dataclass(frozen=True)
class LlmFacts:
    """What the model is, asked of the engine. `context` is the most that the model was made for; 0: not told.

    `kv_token_bytes` is what one more token of one sequence adds to the cache.
    """

    architecture: str
    vocabulary: int
    context: int
    weights_bytes: int
    kv_token_bytes: int
    parameters: int | None = None
    tokenizer_sha256: str = ""
    template_sha256: str = ""


@dataclass(frozen=True)
class EncodedPrompt:
    """The ids of what is asked, and its `form` in words: in the model's chat template, or as plain text and why."""

    ids: list[int]
    form: str


CHAT_TEMPLATE = "chat template"
NO_TEMPLATE = "plain text: the model has no chat template"


class LlmSession(Protocol):
    """A loaded language model with a cache of keys and values. `device_id` is the card's own name; None: no card.

    One whose device's memory the engine counts is a `TracksDeviceMemory` too.
    """

    device_id: str | None

    def effect(self) -> Effect:
        """Ask the engine what it does with this model."""

    def facts(self) -> LlmFacts:
        """Return what the model is."""

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, without any that the model's template would add.

        Raises:
            InputError: The model has no tokenizer, with the code `no_tokenizer`.
        """

    def encode_prompt(self, messages: Sequence[Mapping[str, str]]) -> EncodedPrompt:
        """Return the ids of a conversation that the model is to answer, with every mark that it expects.

        It stands in the model's chat template where there is one and the engine can apply it; else it is plain text.

        Raises:
            InputError: There is no tokenizer (`no_tokenizer`), or the template fails (`bad_template`).
        """

    def detokenize(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without marks."""

    def end_ids(self) -> frozenset[int]:
        """Return the ids with which the model ends an answer."""

    def reset(self) -> None:
        """Empty the cache: `kv_bytes` is 0 then."""

    def prefill(self, ids: Array) -> Array:
        """Read ids behind what the cache holds; return the most likely next id of each sequence, on the host.

        Args:
            ids: One row for each sequence of the batch, all of one length.
        """

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        """Write `count` tokens greedily, whatever they are; the end of a text does not end it.

        Args:
            tokens: The last id of each sequence, which the cache does not hold yet.
            count: How many steps to take.
            on_token: Called after each step, as soon as its ids are on the host.

        Returns:
            The ids, a row for each sequence.
        """

    def logits(self, ids: Array) -> Array:
        """Read one sequence into an empty cache; return the logits after each of its ids, as float32 rows."""

    def kv_bytes(self) -> int:
        """Return what the cache holds now, as the engine tells it; of an empty one, what the engine itself counts."""


@runtime_checkable
class VerifiesDrafts(Protocol):
    """A session that checks several guessed tokens of one sequence in one step, as speculative decoding does.

    Its engine says so before anything is loaded: `speculates` is true.
    """

    def verify(self, ids: Array) -> Array:
        """Read ids of one sequence behind what the cache holds; return the most likely next id after each of them."""

    def rewind(self, length: int) -> None:
        """Keep only the first `length` tokens of the cache."""


@runtime_checkable
class LlmEngine(Protocol):
    """An engine that hosts language models."""

    def load_llm(self, path: str, options: LlmOptions) -> LlmSession:
        """Load a language model.

        Raises:
            InputError: The file is damaged or of an architecture that the engine does not know.
            CapacityError: The unit or the precision is not there; there is no fallback.
        """


def refuse_as_model(engine: str) -> InputError:
    """Return the error for a language model that was given to an engine as a plain model."""
    return InputError(
        f"{engine} hosts language models, which are measured by their tokens",
        hint="prony llm MODEL, or a recipe with `kind: llm`",
        code="format_unavailable",
    )


def cache_not_empty(what: str) -> SutError:
    """Return the error for a prompt that was read, or could be, from what the engine kept of an earlier one."""
    hint = "turn off the engine's prompt cache: reading would be faster than it is"
    return SutError(what, hint=hint, code="cache_not_empty")


def empty_cache(session: LlmSession) -> None:
    """Empty a session's cache, and ask whether it is empty.

    Raises:
        SutError: Something is left of what was read before, with the code `cache_not_empty`.
    """
    session.reset()
    if left := session.kv_bytes():
        tokens = left / max(1, session.facts().kv_token_bytes)
        raise cache_not_empty(f"the cache held {left} bytes ({tokens:.0f} tokens) after it was emptied")


def describe_load_failure(engine: str, model: str, said: str) -> PronyError:
    """Return the error for a model that an engine did not load, by what the engine said: its first line tells why."""
    reason = _PLACE.sub("", (said.strip().splitlines() or ["no reason given"])[0]).rstrip(". ")
    message = f"{engine} cannot load {model}: {reason.replace('std::bad_alloc', 'out of memory (std::bad_alloc)')}"
    if is_memory_shortage(said):
        return SutError(message, hint=MEMORY_HINT, code="out_of_memory")
    hint = "check that the model is complete, and that this version supports it"
    return InputError(message, hint=hint, code="damaged_model")


def describe_template_failure(said: str) -> InputError:
    """Return the error for a chat template that failed when it was applied to a prompt."""
    reason = (said.strip().splitlines() or ["no reason given"])[0].rstrip(". ")
    return InputError(
        f"the model's chat template fails: {reason}",
        hint="correct the chat template of the model; if it allows no system message, remove prompts.system",
        code="bad_template",
    )


def join_messages(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a conversation as plain text, for models without a chat template."""
    return "\n\n".join(one["content"] for one in messages)


def hash_words(words: Sequence[str | bytes]) -> str:
    """Return the SHA-256 of a vocabulary in its order."""
    found = hashlib.sha256()
    for word in words:
        found.update(word if isinstance(word, bytes) else word.encode())
        found.update(b"\0")
    return found.hexdigest()


# A folder with this file has no weights: they are made when it is loaded, the same wherever that is.
SEEDED = "seeded.json"
_SEEDED_STD = 0.02


def seeded_values(name: str, shape: Sequence[int], seed: int) -> Array:
    """Return the weights of a tensor, in float32, by its name in Hugging Face's layout; norms are ones."""
    if "norm" in name:
        return np.ones(shape, np.float32)
    key = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8])
    made = np.random.Generator(np.random.PCG64(key)).standard_normal(tuple(shape), np.float32)
    made *= np.float32(_SEEDED_STD)
    return made
