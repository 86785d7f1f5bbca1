"""Task: how well a model predicts texts, token by token; nothing is answered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from prony.model.answer import ScoringOptions
from prony.plugins.tasks.item_rows import name_rows, row_text
from prony.plugins.tasks.rows import rows_at
from prony.plugins.tasks.summarize import ARTICLES
from prony.ports.driver import ItemAnswer, Prompt, Stamps, TaskItem, read_likelihood

_OWN_TEXT = "article"


class PerplexityOptions(ScoringOptions):
    """Which texts, and how much of each the model sees at once."""

    file: str | None = Field(
        default=None,
        min_length=1,
        description="a .jsonl, .json, .csv or .parquet file, relative to the recipe; default: Prony's own 36 articles",
        json_schema_extra={"path": True},
    )
    id: str = Field(default="id", min_length=1, description="column with the id of a text; default: its number")
    text: str = Field(default="text", min_length=1, description="column with the text")
    texts: int | None = Field(default=None, ge=1, description="use only the first N")
    window: int = Field(
        default=512, ge=16, description="most tokens that the model sees at once; longer texts are read in windows"
    )


class Perplexity:
    """Texts whose every token is predicted from those before it."""

    name: ClassVar[str] = "perplexity"
    Options: ClassVar[type[Any]] = PerplexityOptions
    predicts: ClassVar[bool] = True

    def prompts(
        self,
        options: PerplexityOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        del seeds, lengths
        rows = rows_at(ARTICLES if options.file is None else base / options.file)[: options.texts]
        column = _OWN_TEXT if options.file is None else options.text
        names = name_rows(rows, options.id)
        return [
            Prompt(
                messages=({"role": "user", "content": row_text(row, column, number)},),
                item=TaskItem(name),
                window=options.window,
            )
            for number, (row, name) in enumerate(zip(rows, names, strict=True), start=1)
        ][:count]

    def score(self, options: PerplexityOptions, answers: Sequence[ItemAnswer]) -> Mapping[str, Sequence[float]]:
        del options
        told = [read_likelihood(one.output) for one in answers]
        return {
            "token_nll": [one.nat / one.tokens for one in told],
            "bits_per_byte": [one.nat / math.log(2) / one.text_bytes for one in told],
        }

    def scoring(self, options: PerplexityOptions) -> str:
        return f"negative log-likelihood of each text's tokens, in windows of {options.window} with half of each before"
