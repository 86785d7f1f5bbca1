"""ROUGE of a text against references, number for number as the package rouge-score 0.1.2 has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from prony.plugins.tasks.porter import stem

# By the names of the metrics.
ROUGES = ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")
_OTHER = re.compile(r"[^a-z0-9]+")
Tokens = tuple[str, ...]


def score_rouge(output: str, references: Sequence[str], *, stems: bool, splits: bool = True) -> dict[str, float]:
    """Return the F-measure of each ROUGE, that of the reference where it is highest.

    `stems`: compare the stems of words longer than three letters. `splits`: ROUGE-Lsum is told of sentences, by the
    rule of `split_sentences`; else of lines, as in rouge-score.
    """
    tokens = tokenize(output, stems=stems)
    each = []
    for reference in references:
        wanted = tokenize(reference, stems=stems)
        sentences = [
            [tokenize(one, stems=stems) for one in (split_sentences(text) if splits else text.split("\n")) if one]
            for text in (reference, output)
        ]
        each.append(
            (
                _f_of_ngrams(wanted, tokens, 1),
                _f_of_ngrams(wanted, tokens, 2),
                _f_of_subsequence(wanted, tokens),
                _f_of_sentences(sentences[0], sentences[1]),
            )
        )
    best = (max(values) for values in zip(*each, strict=True)) if each else (0.0,) * len(ROUGES)
    return dict(zip(ROUGES, best, strict=True))


def tokenize(text: str, *, stems: bool) -> Tokens:
    """Return the words in lower case; what is no letter from a to z and no digit stands between words."""
    words = _OTHER.sub(" ", text.lower()).split()
    return tuple(stem(word) if stems and len(word) > 3 else word for word in words)


# What ends with a dot and no sentence.
_ABBREVIATIONS = frozenset((
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "no", "fig", "approx", "ca", "cf", "u.s", "u.k",
    "a.d", "b.c", "jr", "sr",
))  # fmt: skip
_BORDER = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")


@lru_cache(maxsize=4096)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences: one ends at a line's end, or at a dot, `!` or `?` before a space and a capital or digit.

    No sentence ends after an abbreviation or a single capital, as of a name.
    """
    found: list[str] = []
    for line in text.splitlines():
        begin = 0
        for border in _BORDER.finditer(line):
            last = line[begin : border.start()].rsplit(None, 1)[-1:]
            word = last[0].rstrip(".").lower() if last else ""
            if line[border.start() - 1] == "." and (word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha())):
                continue
            found.append(line[begin : border.end()].strip())
            begin = border.end()
        found.append(line[begin:].strip())
    return tuple(one for one in found if one)


def _f_measure(hits: int, wanted: int, given: int) -> float:
    precision, recall = hits / max(given, 1), hits / max(wanted, 1)
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _f_of_ngrams(wanted: Tokens, given: Tokens, length: int) -> float:
    counts = [_count_ngrams(tokens, length) for tokens in (wanted, given)]
    hits = sum(min(count, counts[1][ngram]) for ngram, count in counts[0].items())
    return _f_measure(hits, counts[0].total(), counts[1].total())


def _count_ngrams(tokens: Tokens, length: int) -> Counter[Tokens]:
    return Counter(tokens[at : at + length] for at in range(len(tokens) - length + 1))


def _f_of_subsequence(wanted: Tokens, given: Tokens) -> float:
    if not wanted or not given:
        return 0.0
    return _f_measure(_subsequence_table(wanted, given)[-1][-1], len(wanted), len(given))


def _subsequence_table(wanted: Tokens, given: Tokens) -> list[list[int]]:
    """Return the length of the longest common subsequence of each two beginnings."""
    table = [[0] * (len(given) + 1)]
    for word in wanted:
        above, row = table[-1], [0]
        for place, other in enumerate(given):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
        table.append(row)
    return table


def _f_of_sentences(wanted: Sequence[Tokens], given: Sequence[Tokens]) -> float:
    """Return the F-measure of the union of what each sentence has in common with all others; no word counts twice."""
    left = [Counter(word for sentence in side for word in sentence) for side in (wanted, given)]
    totals = [counts.total() for counts in left]
    if not all(totals):
        return 0.0
    hits = 0
    for sentence in wanted:
        for place in sorted(set().union(*(_common_places(sentence, other) for other in given))):
            word = sentence[place]
            if left[0][word] > 0 and left[1][word] > 0:
                hits += 1
                left[0][word] -= 1
                left[1][word] -= 1
    return _f_measure(hits, totals[0], totals[1])


def _common_places(wanted: Tokens, given: Tokens) -> set[int]:
    """Return the places in `wanted` of one longest common subsequence, of several the one that rouge-score reads."""
    table = _subsequence_table(wanted, given)
    row, column = len(wanted), len(given)
    found = set()
    while row and column:
        if wanted[row - 1] == given[column - 1]:
            row, column = row - 1, column - 1
            found.add(row)
        elif table[row][column - 1] > table[row - 1][column]:
            column -= 1
        else:
            row -= 1
    return found
