"""Task: summaries of articles, scored by ROUGE against references."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from prony.errors import InputError
from prony.model.answer import ScoringOptions
from prony.plugins.tasks.item_rows import name_rows, row_text, row_texts
from prony.plugins.tasks.rouge import ROUGES, score_rouge, split_sentences
from prony.plugins.tasks.rows import rows_at
from prony.plugins.tasks.spread import Spread, draw_lengths, lengths_or
from prony.plugins.tokenizer import tokenizer_at
from prony.ports.driver import ItemAnswer, Prompt, Stamps, TaskItem

ARTICLES = Path(__file__).with_name("articles.jsonl")
_PROMPT = "Summarize the following article in a concise paragraph:\n\n{article}\n\nSummary:"
Size = Callable[[str], int]


class SummarizeOptions(ScoringOptions):
    """Which articles, how much of each, and how summaries are scored."""

    file: str | None = Field(
        default=None,
        min_length=1,
        description="a .jsonl, .json, .csv or .parquet file, relative to the recipe; default: Prony's own 36 articles",
        json_schema_extra={"path": True},
    )
    id: str = Field(default="id", min_length=1, description="column with the id of an article; default: its number")
    article: str = Field(default="article", min_length=1, description="column with the article")
    summaries: str = Field(default="summaries", min_length=1, description="column with one reference, or a list")
    articles: int | None = Field(default=None, ge=1, description="use only the first N")
    prompt: str = Field(default=_PROMPT, min_length=1, description="the prompt; {article} is replaced by the article")
    system: str | None = Field(default=None, min_length=1, description="a system message before every prompt")
    output_tokens: Spread = Field(default="160", description="most tokens of a summary")
    longest: int | None = Field(
        default=None, ge=20, description="most words of an article in one prompt; with a tokenizer, most tokens"
    )
    fit: Literal["cut", "chunk", "refuse"] = Field(
        default="cut", description="what to do with longer articles: cut them, ask in parts, or fail"
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a Hugging Face tokenizer.json that counts the tokens of articles and prompts",
        json_schema_extra={"path": True},
    )
    stem: bool = Field(default=True, description="score the stems of words, as most papers do")
    sentences: bool = Field(default=True, description="ROUGE-Lsum by sentences; false: by lines, as rouge-score has it")


class Summarize:
    """Articles in, summaries out."""

    name: ClassVar[str] = "summarize"
    Options: ClassVar[type[Any]] = SummarizeOptions

    def prompts(
        self,
        options: SummarizeOptions,
        *,
        count: int,
        seeds: Mapping[str, int],
        base: Path,
        lengths: Stamps | None = None,
    ) -> Sequence[Prompt]:
        if "{article}" not in options.prompt:
            raise InputError(
                "prompts.prompt has no {article}", hint="put {article} where the article belongs", code="recipe"
            )
        tokenizer = tokenizer_at(options.tokenizer, base)
        size: Size = _count_words if tokenizer is None else tokenizer.count
        asked = [pair for pair, _ in zip(_ask(options, base, size), range(count), strict=False)]
        rng = np.random.Generator(np.random.PCG64([seeds["lengths"], 1]))
        outputs = lengths_or(lengths, 1, draw_lengths(options.output_tokens, len(asked), rng))
        system = () if options.system is None else ({"role": "system", "content": options.system},)
        return [
            Prompt(
                messages=(*system, {"role": "user", "content": text}),
                max_tokens=int(output),
                input_tokens=None if tokenizer is None else tokenizer.count(text),
                item=item,
            )
            for (text, item), output in zip(asked, outputs, strict=True)
        ]

    def score(self, options: SummarizeOptions, answers: Sequence[ItemAnswer]) -> Mapping[str, Sequence[float]]:
        found = [_rouge(one.output, one.references, options.stem, options.sentences) for one in answers]
        return {name: [one[name] for one in found] for name in ROUGES}

    def scoring(self, options: SummarizeOptions) -> str:
        stems, split = "porter" if options.stem else "none", "sentences" if options.sentences else "lines"
        return f"ROUGE F-measure of the best reference, stem={stems} split={split}, as rouge-score 0.1.2"


# Runs answer alike where nothing is drawn at random, and a summary is then scored once.
@lru_cache(maxsize=4096)
def _rouge(output: str, references: tuple[str, ...], stems: bool, splits: bool) -> dict[str, float]:
    return score_rouge(output, references, stems=stems, splits=splits)


def _ask(options: SummarizeOptions, base: Path, size: Size) -> Iterator[tuple[str, TaskItem]]:
    """Yield what is asked, article by article and part by part, as long as somebody wants more."""
    rows = rows_at(ARTICLES if options.file is None else base / options.file)[: options.articles]
    for number, (row, name) in enumerate(zip(rows, name_rows(rows, options.id), strict=True), start=1):
        references = row_texts(row, options.summaries, number)
        whole = clean_article(row_text(row, options.article, number))
        parts = [whole] if options.longest is None else _fit_parts(whole, name, options, size)
        left_out = _count_words(whole) - sum(map(_count_words, parts))
        for place, part in enumerate(parts):
            text = options.prompt.replace("{article}", part)
            yield text, TaskItem(name, references, place, len(parts), left_out if place == 0 else 0)


_MARKS = re.compile(
    r"<ref[^>]*/>|<ref[^>]*>.*?</ref>|<!--.*?-->|\{\{[^{}]*\}\}|\[\d{1,3}\]|\[citation needed\]", re.DOTALL
)
_TAGS = re.compile(r"</?[a-zA-Z][^<>]*>")
_LINKS = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_HEADINGS = re.compile(r"^[ \t]*(?:={2,6}[ \t]*(.+?)[ \t]*={2,6}|#{1,6}[ \t]+(.+?))[ \t]*$", re.MULTILINE)


def clean_article(text: str) -> str:
    """Return an article as plain paragraphs: no marks of references, no tags and links of a wiki, no surplus space."""
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n")
    text = _LINKS.sub(r"\1", _TAGS.sub("", _MARKS.sub("", text))).replace("'''", "").replace("''", "")
    text = _HEADINGS.sub(lambda found: found[1] or found[2], text)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _count_words(text: str) -> int:
    return len(text.split())


def _fit_parts(whole: str, name: str, options: SummarizeOptions, size: Size) -> list[str]:
    """Return the parts of an article that are asked about, none longer than the recipe says."""
    longest = options.longest or 0
    if size(whole) <= longest:
        return [whole]
    if options.fit == "refuse":
        unit = "words" if options.tokenizer is None else "tokens"
        hint = "use prompts.fit: cut or chunk, or raise prompts.longest"
        raise InputError(f"article {name} has {size(whole)} {unit}, more than {longest}", hint=hint)
    parts = _pack_sentences(whole, longest, size)
    return parts if options.fit == "chunk" else parts[:1]


def _pack_sentences(whole: str, longest: int, size: Size) -> list[str]:
    """Return whole sentences, as many in each part as fit; a sentence that is longer than a part is cut into words."""
    parts: list[str] = []
    for sentence in split_sentences(whole):
        for piece in _cut_words(sentence, longest, size):
            if parts and size(f"{parts[-1]} {piece}") <= longest:
                parts[-1] = f"{parts[-1]} {piece}"
            else:
                parts.append(piece)
    return parts


def _cut_words(sentence: str, longest: int, size: Size) -> list[str]:
    if size(sentence) <= longest:
        return [sentence]
    pieces: list[str] = []
    for word in sentence.split():
        if pieces and size(f"{pieces[-1]} {word}") <= longest:
            pieces[-1] = f"{pieces[-1]} {word}"
        else:
            pieces.append(word)
    return pieces
