"""Task: prompts from a column of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from prony.errors import InputError
from prony.model.base import Noun
from prony.plugins.tasks.rows import Row, Turn, rows_at, shuffle_rows, turns_of
from prony.plugins.tasks.spread import Spread, draw_lengths, lengths_or
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import Prompt, Stamps


class DatasetOptions(Noun):
    """Where the prompts stand."""

    file: str = Field(
        min_length=1,
        description="a .jsonl, .json, .csv or .parquet file, relative to the recipe",
        json_schema_extra={"path": True},
    )
    prompt: str = Field(default="prompt", min_length=1, description="column with the prompt, or its messages")
    expected: str | None = Field(
        default=None, min_length=1, description="column with the right answer: quality is the share of exact matches"
    )
    max_tokens: str | None = Field(default=None, min_length=1, description="column with the most tokens of an answer")
    output_tokens: Spread = Field(default="256", description="most tokens of an answer, unless a column gives it")
    exact: bool = Field(default=False, description="ask the server to continue until the answer has all its tokens")
    system: str | None = Field(default=None, min_length=1, description="a system message before every prompt")
    order: Literal["file", "shuffled"] = Field(default="file", description="order of the prompts")
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json that counts the tokens of prompts",
        json_schema_extra={"path": True},
    )


class Dataset:
    """Prompts that somebody has collected."""

    name: ClassVar[str] = "dataset"
    Options: ClassVar[type[Any]] = DatasetOptions

    def prompts(
        self,
        options: DatasetOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        rows = rows_at(base / options.file)
        if options.order == "shuffled":
            rows = shuffle_rows(rows, seeds["prompts"])
        rows = rows[:count]
        rng = np.random.Generator(np.random.PCG64([seeds["lengths"], 1]))
        outputs = lengths_or(lengths, 1, draw_lengths(options.output_tokens, len(rows), rng))
        asked = [_messages(row, options, number) for number, row in enumerate(rows, start=1)]
        tokenizer = tokenizer_at(options.tokenizer, base)
        texts = ["\n\n".join(turn["content"] for turn in messages) for messages in asked]
        counts = [None] * len(texts) if tokenizer is None else tokenizer.counts(texts)
        return [
            Prompt(
                messages=messages,
                max_tokens=_most(row, options, int(output)),
                exact_tokens=options.exact,
                input_tokens=tokens,
                expected=_expected_answer(row, options),
            )
            for row, messages, output, tokens in zip(rows, asked, outputs, counts, strict=True)
        ]


def _messages(row: Row, options: DatasetOptions, number: int) -> tuple[Turn, ...]:
    value = row.get(options.prompt)
    turns: list[Turn] = [{"role": "user", "content": value}] if isinstance(value, str) and value else []
    if isinstance(value, list):
        turns = turns_of({"messages": value}) or turns_of({"conversations": value})
    if not turns:
        raise InputError(
            f"{options.file}, row {number}: no prompt in column {options.prompt!r}",
            hint=f"its columns: {', '.join(map(str, row))}; set prompts.prompt to one of them",
        )
    system: list[Turn] = [] if options.system is None else [{"role": "system", "content": options.system}]
    return (*system, *turns)


def _most(row: Row, options: DatasetOptions, otherwise: int) -> int:
    """Return the most tokens that an answer may have: CSV has it as text."""
    value = None if options.max_tokens is None else row.get(options.max_tokens)
    text = str(value).strip()
    return int(text) if value is not None and text.isdecimal() and int(text) > 0 else otherwise


def _expected_answer(row: Row, options: DatasetOptions) -> str | None:
    value = None if options.expected is None else row.get(options.expected)
    return None if value is None else str(value)
