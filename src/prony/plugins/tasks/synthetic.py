"""Task: prompts of random words, of exact token lengths where there is a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from prony.errors import InputError
from prony.model.base import Noun
from prony.plugins.tasks.spread import Lengths, Spread, drawn, lengths_or
from prony.plugins.tasks.words import WORDS
from prony.plugins.tokenizer import Tokenizer, tokenizer_at
from prony.ports.driver import Prompt, Stamps

_ENOUGH_WORDS = 100  # of everyday ones; else those of the tokenizer are taken, whatever they are
_MOST_WORDS = 4096
_TRIES = 8


class SyntheticOptions(Noun):
    """How long prompts and answers are."""

    input_tokens: Spread | None = Field(
        default=None, description="tokens of a prompt, shared ones among them; needs a tokenizer; default with one: 128"
    )
    input_words: Spread | None = Field(
        default=None, description="words of a prompt where there is no tokenizer; default: 100"
    )
    output_tokens: Spread = Field(default="128", description="tokens of an answer")
    exact: bool = Field(
        default=True, description="ask the server to go on until an answer has all its tokens, where it can"
    )
    shared_prefix_tokens: int = Field(
        default=0, ge=0, description="tokens that all prompts have in common at their beginning; needs a tokenizer"
    )
    shared_prefix_words: int = Field(
        default=0, ge=0, description="words that all prompts have in common, where there is no tokenizer"
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json: a path, relative to the recipe",
        json_schema_extra={"path": True},
    )

    @model_validator(mode="after")
    def _countable(self) -> Self:
        if self.tokenizer is None and (self.input_tokens is not None or self.shared_prefix_tokens):
            raise ValueError("tokens are counted by a tokenizer: give one, or write input_words")
        if self.tokenizer is not None and (self.input_words is not None or self.shared_prefix_words):
            raise ValueError("with a tokenizer, write input_tokens and shared_prefix_tokens")
        return self


class Synthetic:
    """Random words: nothing that a server could have cached, but for a prefix that is asked for."""

    name: ClassVar[str] = "synthetic"
    Options: ClassVar[type[Any]] = SyntheticOptions

    def prompts(
        self,
        options: SyntheticOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        inputs, outputs = _lengths(options, count, seeds["lengths"], lengths)
        tokenizer = tokenizer_at(options.tokenizer, base)
        prefix = options.shared_prefix_tokens or options.shared_prefix_words
        if tokenizer is None:
            texts = Mixture(WORDS, seeds["prompts"], prefix).texts(inputs)
        else:
            texts = _exact(tokenizer, seeds["prompts"], prefix, inputs)
        return [
            Prompt(
                messages=({"role": "user", "content": text},),
                max_tokens=int(output),
                exact_tokens=options.exact,
                input_tokens=None if tokenizer is None else int(size),
            )
            for text, size, output in zip(texts, inputs, outputs, strict=True)
        ]


def _lengths(options: SyntheticOptions, count: int, seed: int, trace: Stamps | None) -> tuple[Lengths, Lengths]:
    """Return the lengths of prompts and answers, each drawn from a stream of its own."""
    spread = options.input_tokens or "128" if options.tokenizer is not None else options.input_words or "100"
    streams = [np.random.Generator(np.random.PCG64([seed, number])) for number in (0, 1)]
    inputs = lengths_or(trace, 0, drawn(spread, count, streams[0]))
    return inputs, lengths_or(trace, 1, drawn(options.output_tokens, count, streams[1]))


class Mixture:
    """Texts of random words, the first of which are the same in all."""

    def __init__(self, words: Sequence[str], seed: int, prefix: int) -> None:
        self._words = np.array(words)
        self._shared = self._drawn(np.random.Generator(np.random.PCG64([seed, 0])), prefix)
        self._rng = np.random.Generator(np.random.PCG64([seed, 1]))

    def _drawn(self, rng: np.random.Generator, count: int) -> list[str]:
        chosen: list[str] = self._words[rng.integers(len(self._words), size=count)].tolist()
        return chosen

    def texts(self, sizes: Lengths) -> list[str]:
        """Return a text of each size, in words."""
        return [self.text(int(size)) for size in sizes]

    def text(self, size: int) -> str:
        shared = self._shared[:size]
        return " ".join(shared + self._drawn(self._rng, size - len(shared)))


def _exact(tokenizer: Tokenizer, seed: int, prefix: int, sizes: Lengths) -> list[str]:
    """Return texts of exactly so many tokens: what does not come out right is drawn again."""
    words = tokenizer.single(WORDS)
    if len(words) < _ENOUGH_WORDS:
        words = tokenizer.single(tokenizer.words(_MOST_WORDS)) or words
    if not words:
        raise InputError(
            "no word of this tokenizer is one token of its own",
            hint="exact lengths need one; leave the tokenizer out and write input_words",
        )
    mixture = Mixture(words, seed, prefix)
    texts = mixture.texts(sizes)
    for _ in range(_TRIES):
        counts = tokenizer.counts(texts)
        wrong = [index for index, count in enumerate(counts) if count != sizes[index]]
        if not wrong:
            return texts
        for index in wrong:
            texts[index] = mixture.text(int(sizes[index]))
    raise InputError(
        f"this tokenizer makes {counts[wrong[0]]} tokens of a prompt that should have {sizes[wrong[0]]}",
        hint="exact lengths cannot be had from it; leave it out and write input_words",
    )
