"""Task: prompts written in the recipe itself, used in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from prony.model.base import Noun
from prony.plugins.tasks.spread import Spread, draw_lengths, lengths_or
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import Prompt, Stamps

Text = Annotated[str, Field(min_length=1)]


class TextsOptions(Noun):
    """What is asked, word for word."""

    texts: list[Text] = Field(min_length=1, max_length=10_000, description="the prompts, sent one after the other")
    output_tokens: Spread = Field(default="128", description="most tokens of an answer")
    exact: bool = Field(default=False, description="ask the server to continue until the answer has all its tokens")
    system: str | None = Field(default=None, min_length=1, description="a system message before every text")
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json that counts the tokens of prompts",
        json_schema_extra={"path": True},
    )


class Texts:
    """A few prompts of the recipe's own, in turns: a server may well have cached them."""

    name: ClassVar[str] = "texts"
    Options: ClassVar[type[Any]] = TextsOptions

    def prompts(
        self,
        options: TextsOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        rng = np.random.Generator(np.random.PCG64([seeds["lengths"], 1]))
        outputs = lengths_or(lengths, 1, draw_lengths(options.output_tokens, count, rng))
        tokenizer = tokenizer_at(options.tokenizer, base)
        system = () if options.system is None else ({"role": "system", "content": options.system},)
        counts = [None] * len(options.texts) if tokenizer is None else tokenizer.counts(options.texts)
        return [
            Prompt(
                messages=(*system, {"role": "user", "content": options.texts[number % len(options.texts)]}),
                max_tokens=int(output),
                exact_tokens=options.exact,
                input_tokens=counts[number % len(options.texts)],
            )
            for number, output in enumerate(outputs)
        ]
