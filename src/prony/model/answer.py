"""Answers of an LLM that are kept to be scored, and how a recipe says by whom."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.model.base import Noun
from prony.model.quantity import DurationNs

_LIMIT_NS = 60 * 10**9


class ScoringOptions(Noun):
    """What every task takes whose answers are scored."""

    scorer: str | None = Field(
        default=None,
        min_length=1,
        description="your own scorer: a command (JSON lines in, JSON lines of numbers out), or FILE.py:FUNCTION",
        examples=["python my_scorer.py", "my_scorer.py:score"],
        json_schema_extra={"path": "command"},
    )
    scorer_limit: DurationNs = Field(default=_LIMIT_NS, description="how long that command may take; then it is killed")


class KeptAnswer(Noun):
    """One line of `outputs.jsonl`: what was answered to one part of an item in one run.

    `round` counts how often the set was asked in the run before; `failed` says why there is no answer.
    """

    repetition: int
    round: int = 0
    item: str
    part: int = 0
    parts: int = 1
    input: str = ""
    output: str = ""
    references: tuple[str, ...] = ()
    finish: str = ""
    output_tokens: int | None = None
    left_out_words: int = 0
    failed: str = ""


FiniteScore = Annotated[float, Field(allow_inf_nan=False)]


class ItemScores(Noun):
    """One line of `scores.jsonl`: what the user's own scorer said of the answer to one item, by name."""

    repetition: int
    round: int = 0
    item: str
    scores: dict[str, FiniteScore]


class NewScores(Noun):
    """What the user's own scorer said of the answers of each job, by the job's id.

    Without any, every job is scored again by its task alone.
    """

    jobs: dict[str, tuple[ItemScores, ...]] = {}


class ScoredJobs(Noun):
    """The jobs whose answers were scored again."""

    jobs: tuple[str, ...]
