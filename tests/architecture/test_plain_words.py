"""Users meet plain words: no banned phrase, and pages of short sentences. What is still let through only shrinks."""

from __future__ import annotations

from .plain_words import MOST_WORDS, MOST_WORDS_IN_ALL, banned_uses, count_words, lists, long_pages, median_words

HOW = "take it out of the list: python -m tests.architecture.plain_words"


def test_no_banned_phrase_comes_back() -> None:
    used = {f"{name}: {phrase}" for name, phrase in banned_uses()}
    assert sorted(used - set(lists()["exceptions"])) == []
    assert sorted(set(lists()["exceptions"]) - used) == [], HOW


def test_half_of_the_sentences_of_a_page_are_short() -> None:
    found = long_pages()
    assert sorted(found - set(lists()["long_pages"])) == [], f"the median must stay under {MOST_WORDS} words"
    assert sorted(set(lists()["long_pages"]) - found) == [], HOW


def test_the_pages_stay_few_words() -> None:
    assert 10_000 < count_words() <= MOST_WORDS_IN_ALL


def test_words_are_counted_in_running_text_alone() -> None:
    page = """# A heading that is much longer than anything else on this page

One two three four. Five `prony run a b c d` seven [eight nine](page.md#there).

| a table with very many words in it that must not be counted at all here |

```text
This is not counted either. It is code.
```
- one item with six words here
"""
    assert median_words(page) == 5
