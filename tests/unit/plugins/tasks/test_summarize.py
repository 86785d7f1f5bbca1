"""The articles in the package, and how they become prompts: cleaned, cut or in parts, and what was left out is told."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from prony.errors import InputError
from prony.plugins.tasks.summarize import ARTICLES, Summarize, SummarizeOptions, clean_article
from prony.ports.driver import Prompt

ROWS = [json.loads(line) for line in ARTICLES.read_text(encoding="utf-8").splitlines()]


def ask(base: Path, count: int = 100, **options: Any) -> list[Prompt]:
    made = Summarize().prompts(SummarizeOptions(**options), count=count, seeds={"prompts": 1, "lengths": 1}, base=base)
    return list(made)


def test_the_package_has_36_articles_of_200_to_2000_words_with_references() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 36
    assert all(200 <= len(row["article"].split()) <= 2000 for row in ROWS)
    assert all(30 <= len(summary.split()) <= 120 for row in ROWS for summary in row["summaries"])
    assert sum(len(row["summaries"]) >= 2 for row in ROWS) >= 12


def test_the_articles_differ_in_length() -> None:
    lengths = sorted(len(row["article"].split()) for row in ROWS)
    assert lengths[0] < 300
    assert lengths[-1] > 1500
    assert sum(length > 500 for length in lengths) >= 8
    assert statistics.median(lengths) == 291.5  # as docs/quality.md says, rounded


def test_every_article_is_asked_about_once_with_its_references(tmp_path: Path) -> None:
    made = ask(tmp_path)
    assert [prompt.item.name for prompt in made if prompt.item] == [row["id"] for row in ROWS]
    assert all(prompt.item and not prompt.item.left_out_words for prompt in made)
    assert "fulcrum" in made[0].messages[0]["content"]


def test_a_long_article_is_cut_at_a_sentence_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    (prompt,) = ask(tmp_path, articles=1, longest=100, fit="cut", prompt="{article}")
    assert prompt.item is not None
    words = len(prompt.messages[0]["content"].split())
    assert words <= 100
    assert prompt.messages[0]["content"].endswith(".")
    assert words + prompt.item.left_out_words == len(ROWS[0]["article"].split())


def test_a_chunked_article_is_asked_about_in_parts_that_hold_all_of_it(tmp_path: Path) -> None:
    made = ask(tmp_path, articles=1, longest=100, fit="chunk", prompt="{article}")
    items = [prompt.item for prompt in made if prompt.item is not None]
    assert [item.part for item in items] == list(range(len(made)))
    assert {item.parts for item in items} == {len(made)} != {1}
    together = " ".join(prompt.messages[0]["content"] for prompt in made)
    assert together.split() == ROWS[0]["article"].split()


def test_an_article_that_must_fit_and_does_not_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"article lever has 280 words, more than 100"):
        ask(tmp_path, longest=100, fit="refuse")


def test_a_file_of_ones_own_names_its_columns_and_is_cleaned(tmp_path: Path) -> None:
    row = {"key": "steam", "body": "== Steam ==\nHot [[water|water]]<ref>x</ref> boils.[1]", "gold": "Water boils."}
    (tmp_path / "mine.jsonl").write_text(json.dumps(row) + "\n")
    (prompt,) = ask(tmp_path, file="mine.jsonl", id="key", article="body", summaries="gold", prompt="{article}")
    assert prompt.messages[0]["content"] == "Steam\nHot water boils."
    assert prompt.item is not None
    assert (prompt.item.name, prompt.item.references) == ("steam", ("Water boils.",))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"article": "x"}, "row 1: no reference in column 'summaries'"),
        ({"summaries": "x"}, "row 1: no text in column 'article'"),
    ],
)
def test_a_row_that_lacks_something_is_named(tmp_path: Path, row: dict[str, str], said: str) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match=said):
        ask(tmp_path, file="mine.jsonl")


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    row = {"id": "a", "article": "x", "summaries": "y"}
    (tmp_path / "mine.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row)}\n")
    with pytest.raises(InputError, match="two rows have the id 'a'"):
        ask(tmp_path, file="mine.jsonl")


def test_paragraphs_stay_and_templates_go() -> None:
    assert clean_article("A  b {{cite}}c.\r\n\r\n\r\n\r\n## Next\nD '''e'''.") == "A b c.\n\nNext\nD e."
