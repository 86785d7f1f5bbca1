"""Tasks whose right answers are short: questions, and labels of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from prony.errors import InputError
from prony.model.answer import ScoringOptions
from prony.plugins.tasks.answer_scores import exact_match, label_accuracy, token_f1
from prony.plugins.tasks.item_rows import name_rows, row_text, row_texts
from prony.plugins.tasks.rows import rows_at
from prony.plugins.tasks.spread import Spread, draw_lengths, lengths_or
from prony.ports.driver import ItemAnswer, Prompt, Stamps, TaskItem

_FILE = "a .jsonl, .json, .csv or .parquet file, relative to the recipe"


class _QuestionOptions(ScoringOptions):
    """What both tasks take."""

    file: str = Field(min_length=1, description=_FILE, json_schema_extra={"path": True})
    id: str = Field(default="id", min_length=1, description="column with the id of a row; default: its number")
    rows: int | None = Field(default=None, ge=1, description="use only the first N")
    system: str | None = Field(default=None, min_length=1, description="a system message before every prompt")
    output_tokens: Spread = Field(default="32", description="most tokens of an answer")


class QaOptions(_QuestionOptions):
    """Where questions and their answers stand."""

    question: str = Field(default="question", min_length=1, description="column with the question")
    context: str | None = Field(default=None, min_length=1, description="column with a text that has the answer")
    answers: str = Field(default="answers", min_length=1, description="column with one right answer, or a list")


class ClassifyOptions(_QuestionOptions):
    """Where texts and their labels stand."""

    text: str = Field(default="text", min_length=1, description="column with the text")
    label: str = Field(default="label", min_length=1, description="column with the right label")
    labels: list[str] = Field(default=[], description="the allowed labels; default: those in the file")


class Qa:
    """Questions, scored by exact match and F1 as in SQuAD."""

    name: ClassVar[str] = "qa"
    Options: ClassVar[type[Any]] = QaOptions

    def prompts(
        self, options: QaOptions, *, count: int, seeds: Mapping[str, int], base: Path, lengths: Stamps | None = None
    ) -> Sequence[Prompt]:
        rows = rows_at(base / options.file)[: options.rows]
        asked = []
        for number, (row, name) in enumerate(zip(rows, name_rows(rows, options.id), strict=True), start=1):
            question = row_text(row, options.question, number)
            context = "" if options.context is None else f"{row_text(row, options.context, number)}\n\n"
            text = f"{context}Answer the question in a few words.\n\nQuestion: {question}\nAnswer:"
            asked.append((text, TaskItem(name, row_texts(row, options.answers, number))))
        return _build_prompts(asked[:count], options, seeds, lengths)

    def score(self, options: QaOptions, answers: Sequence[ItemAnswer]) -> Mapping[str, Sequence[float]]:
        del options
        return {
            "exact_match": [exact_match(one.output, one.references) for one in answers],
            "token_f1": [token_f1(one.output, one.references) for one in answers],
        }

    def scoring(self, options: QaOptions) -> str:
        del options
        return "exact match and F1 of words against the best reference, normalised as in SQuAD"


class Classify:
    """Texts that get one of several labels, scored by accuracy."""

    name: ClassVar[str] = "classify"
    Options: ClassVar[type[Any]] = ClassifyOptions

    def prompts(
        self,
        options: ClassifyOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        rows = rows_at(base / options.file)[: options.rows]
        right = [str(row_texts(row, options.label, number)[0]) for number, row in enumerate(rows, start=1)]
        labels = options.labels or sorted(set(right))
        if strange := sorted(set(right) - set(labels)):
            raise InputError(f"{strange[0]!r} is not in prompts.labels", hint=f"prompts.labels has {', '.join(labels)}")
        begin = f"Classify the following text as one of: {', '.join(labels)}. Answer with the label alone."
        asked = []
        for number, (row, name) in enumerate(zip(rows, name_rows(rows, options.id), strict=True), start=1):
            text = f"{begin}\n\n{row_text(row, options.text, number)}\n\nLabel:"
            # The right label first, then those that must not be named with it.
            others = (one for one in labels if one != right[number - 1])
            asked.append((text, TaskItem(name, (right[number - 1], *others))))
        return _build_prompts(asked[:count], options, seeds, lengths)

    def score(self, options: ClassifyOptions, answers: Sequence[ItemAnswer]) -> Mapping[str, Sequence[float]]:
        del options
        return {"label_match": [label_accuracy(one.output, one.references[0], one.references) for one in answers]}

    def scoring(self, options: ClassifyOptions) -> str:
        del options
        return "share of answers that name the right label and no other"


def _build_prompts(
    asked: Sequence[tuple[str, TaskItem]], options: _QuestionOptions, seeds: Mapping[str, int], lengths: Stamps | None
) -> list[Prompt]:
    rng = np.random.Generator(np.random.PCG64([seeds["lengths"], 1]))
    outputs = lengths_or(lengths, 1, draw_lengths(options.output_tokens, len(asked), rng))
    system = () if options.system is None else ({"role": "system", "content": options.system},)
    return [
        Prompt(messages=(*system, {"role": "user", "content": text}), max_tokens=int(output), item=item)
        for (text, item), output in zip(asked, outputs, strict=True)
    ]
