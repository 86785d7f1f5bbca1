"""Scores of short answers: exact match and F1 of tokens by SQuAD's rules, and the accuracy of a label."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return an answer as SQuAD compares it: in lower case, without punctuation, articles and surplus space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(output: str, references: Sequence[str]) -> float:
    """Return 1 where the answer is one of the references, else 0."""
    return _best(output, references, lambda given, wanted: float(given == wanted))


def token_f1(output: str, references: Sequence[str]) -> float:
    """Return the F1 of the words that the answer has in common with the reference that it is nearest to."""
    return _best(output, references, _f1)


def label_accuracy(output: str, label: str, labels: Sequence[str]) -> float:
    """Return 1 where the answer names this label and no other of `labels`, else 0."""
    said = f" {normalize_answer(output)} "
    named = {one for one in {label, *labels} if f" {normalize_answer(one)} " in said}
    # "not spam" names "spam" too: the longer label is the one that was meant.
    meant = {one for one in named if not any(one != other and one in other for other in named)}
    return float(meant == {label})


def _best(output: str, references: Sequence[str], score: Callable[[str, str], float]) -> float:
    given = normalize_answer(output)
    return max((score(given, normalize_answer(one)) for one in references), default=0.0)


def _f1(given: str, wanted: str) -> float:
    words, others = given.split(), wanted.split()
    if not words or not others:
        return float(words == others)
    common = (Counter(words) & Counter(others)).total()
    return 2 * common / (len(words) + len(others))
