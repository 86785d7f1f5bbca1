"""Porter's stemmer, with the changes that NLTK made to it: ROUGE is told with these stems.

The rules are those of M. Porter, "An algorithm for suffix stripping", Program 14 (1980). A rule is a suffix, what takes
its place, and how many times a vowel and a consonant must follow each other in what comes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

Rule = tuple[str, str, int]

_IRREGULAR = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news", "innings": "inning",
    "inning": "inning", "outings": "outing", "outing": "outing", "cannings": "canning", "canning": "canning",
    "howe": "howe", "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
_PLURALS: tuple[Rule, ...] = (("sses", "ss", 0), ("ies", "i", 0), ("ss", "ss", 0), ("s", "", 0))
_DOUBLE_SUFFIXES: tuple[Rule, ...] = tuple(
    (suffix, to, 1)
    for suffix, to in (
        ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
        ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
        ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
        ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"),
    )
)  # fmt: skip
_ENDINGS: tuple[Rule, ...] = (
    ("icate", "ic", 1), ("ative", "", 1), ("alize", "al", 1), ("iciti", "ic", 1), ("ical", "ic", 1), ("ful", "", 1),
    ("ness", "", 1),
)  # fmt: skip
_LAST_SUFFIXES: tuple[Rule, ...] = tuple(
    (suffix, "", 2)
    for suffix in (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
        "iti", "ous", "ive", "ize",
    )
)  # fmt: skip


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word in lower case."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _strip_participle(_strip_plural(word))
    if word.endswith("y") and len(word) > 2 and _consonants(word[:-1])[-1]:
        word = word[:-1] + "i"
    word = _replace(_strip_double(word), _ENDINGS)
    return _tidy(_strip_last(word))


def _consonants(word: str) -> list[bool]:
    """Say of each letter whether it is a consonant; a `y` is one where none stands before it."""
    found: list[bool] = []
    for letter in word:
        found.append(not (found and found[-1]) if letter == "y" else letter not in "aeiou")
    return found


def _measure(word: str) -> int:
    """Return how often a consonant follows a vowel."""
    flags = _consonants(word)
    return sum(after and not before for before, after in pairwise(flags))


def _has_vowel(word: str) -> bool:
    return not all(_consonants(word))


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _consonants(word)[-1]


def _ends_short(word: str) -> bool:
    """Does it end like `hop`: consonant, vowel, and a consonant that is none of w, x, y?"""
    flags = _consonants(word)
    if len(word) == 2:
        return flags == [False, True]
    return len(word) >= 3 and flags[-3:] == [True, False, True] and word[-1] not in "wxy"


def _replace(word: str, rules: Sequence[Rule]) -> str:
    """Apply the first rule whose suffix the word has; where its condition does not hold, none is applied."""
    for suffix, to, least in rules:
        if word.endswith(suffix):
            before = word[: len(word) - len(suffix)]
            return before + to if _measure(before) >= least else word
    return word


def _strip_plural(word: str) -> str:
    return word[:-1] if word.endswith("ies") and len(word) == 4 else _replace(word, _PLURALS)


def _strip_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    suffix = next((one for one in ("ed", "ing") if word.endswith(one) and _has_vowel(word[: -len(one)])), None)
    return word if suffix is None else _mend_stem(word[: -len(suffix)])


def _mend_stem(word: str) -> str:
    """Give back what `ed` or `ing` took from a stem: hop(p)ing, fil(e)ing."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double(word):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _strip_double(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        return _strip_double(word[:-2])
    found = _replace(word, _DOUBLE_SUFFIXES)
    is_known = any(word.endswith(rule[0]) for rule in _DOUBLE_SUFFIXES)
    return word[:-1] if not is_known and word.endswith("logi") and _measure(word[:-3]) else found


def _strip_last(word: str) -> str:
    """Strip the last suffix; `ion` only after an s or a t."""
    suffix = next((rule[0] for rule in _LAST_SUFFIXES if word.endswith(rule[0])), "")
    if suffix == "ion" and word[-4:-3] not in ("s", "t"):
        return word
    return _replace(word, _LAST_SUFFIXES)


def _tidy(word: str) -> str:
    if word.endswith("e"):
        before = word[:-1]
        measure = _measure(before)
        if measure > 1 or (measure == 1 and not _ends_short(before)):
            word = before
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
