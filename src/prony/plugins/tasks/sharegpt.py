"""Task: the first question of each conversation in a ShareGPT data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from prony.errors import InputError
from prony.model.base import Noun
from prony.plugins.tasks.rows import Turn, exchanges, rows_at, shuffle_rows, turns_of
from prony.plugins.tasks.spread import Spread, draw_lengths, lengths_or
from prony.plugins.tokenizer import Tokenizer, tokenizer_at
from prony.ports.driver import Prompt, Stamps

Exchange = tuple[tuple[Turn, ...], str]
_OTHERWISE = "256"


class ConversationsOptions(Noun):
    """Which conversations, and how long their answers are."""

    file: str = Field(
        min_length=1,
        description="a .json, .jsonl or .parquet file with `conversations` of `from` and `value`, "
        "or `messages` of `role` and `content`; relative to the recipe",
        json_schema_extra={"path": True},
    )
    output_tokens: Spread | None = Field(
        default=None,
        description="tokens of an answer; default: as many as in the data set; 256 without a tokenizer to count them",
    )
    exact: bool = Field(
        default=True, description="ask the server to continue until the answer has all its tokens, if it can"
    )
    order: Literal["file", "shuffled"] = Field(default="shuffled", description="order of the prompts")
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json that counts tokens",
        json_schema_extra={"path": True},
    )


class ShareGptOptions(ConversationsOptions):
    """What else may be asked of first questions."""

    max_input_tokens: int | None = Field(default=None, ge=1, description="skip longer prompts; needs a tokenizer")


class ShareGpt:
    """What people have really asked."""

    name: ClassVar[str] = "sharegpt"
    Options: ClassVar[type[Any]] = ShareGptOptions

    def prompts(
        self,
        options: ShareGptOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        tokenizer = tokenizer_at(options.tokenizer, base)
        if tokenizer is None and options.max_input_tokens is not None:
            raise InputError(
                "max_input_tokens needs a tokenizer", hint="set prompts.tokenizer, or remove max_input_tokens"
            )
        firsts = [found[0] for found in sessions(options, seeds["prompts"], base)]
        if tokenizer is not None and options.max_input_tokens is not None:
            limit = options.max_input_tokens
            counts = tokenizer.counts([_text_of(asked) for asked, _ in firsts])
            firsts = [first for first, size in zip(firsts, counts, strict=True) if size <= limit]
        firsts = firsts[:count]
        return prompts_of(firsts, [None] * len(firsts), options, tokenizer, Outputs(seeds["lengths"], lengths))


class Outputs:
    """How long answers shall be, where the data set does not decide it."""

    def __init__(self, seed: int, trace: Stamps | None) -> None:
        self._rng = np.random.Generator(np.random.PCG64([seed, 1]))
        self._trace = trace

    def chosen(self, own: list[int] | None, spread: str | None, count: int) -> list[int]:
        """Return the trace's lengths, else those that are asked for, else the data set's own."""
        usual = draw_lengths(spread or _OTHERWISE, count, self._rng)
        if spread is None and own is not None:
            usual = np.maximum(np.array(own, dtype=np.int64), 1)
        lengths: list[int] = lengths_or(self._trace, 1, usual).tolist()
        return lengths


def sessions(options: ConversationsOptions, seed: int, base: Path) -> list[list[Exchange]]:
    """Return the exchanges of every conversation that has any."""
    rows = rows_at(base / options.file)
    if options.order == "shuffled":
        rows = shuffle_rows(rows, seed)
    found = [exchanges(turns_of(row)) for row in rows]
    good = [one for one in found if one]
    if not good:
        raise InputError(
            f"{options.file} has no question with an answer",
            hint="rows need `conversations` of `from` and `value`, or `messages` of `role` and `content`",
        )
    return good


def _text_of(messages: Sequence[Turn]) -> str:
    return "\n\n".join(message["content"] for message in messages)


def prompts_of(
    asked: Sequence[Exchange],
    members: Sequence[int | None],
    options: ConversationsOptions,
    tokenizer: Tokenizer | None,
    outputs: Outputs,
) -> list[Prompt]:
    """Return a prompt for each exchange; `members` are the sessions that they belong to."""
    own = None if tokenizer is None else tokenizer.counts([answer for _, answer in asked])
    sizes = None if tokenizer is None else tokenizer.counts([_text_of(messages) for messages, _ in asked])
    most = outputs.chosen(own, options.output_tokens, len(asked))
    return [
        Prompt(
            messages=messages,
            max_tokens=most[index],
            exact_tokens=options.exact,
            input_tokens=None if sizes is None else sizes[index],
            session=members[index],
        )
        for index, (messages, _) in enumerate(asked)
    ]
