"""ROUGE equals the package that everybody quotes, and short answers are scored by SQuAD's rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prony.plugins.tasks.answer_scores import exact_match, label_accuracy, token_f1
from prony.plugins.tasks.porter import stem
from prony.plugins.tasks.rouge import score_rouge, split_sentences

# `made_by` in it is the command whose numbers these are.
PRINTED = json.loads(Path(__file__).with_name("rouge_pairs.json").read_text())


@pytest.mark.parametrize("stems", [False, True])
@pytest.mark.parametrize("place", range(len(PRINTED["pairs"])))
def test_every_rouge_is_what_rouge_score_printed(place: int, stems: bool) -> None:
    target, prediction = PRINTED["pairs"][place]
    found = score_rouge(prediction, [target], stems=stems, splits=False)
    assert list(found.values()) == pytest.approx(PRINTED["scores"][place][str(stems).lower()], abs=1e-9)


def test_the_reference_that_fits_best_counts_for_each_rouge_by_itself() -> None:
    both = score_rouge("a b c d", ["a c b x", "a b y z"], stems=False)
    alone = [score_rouge("a b c d", [one], stems=False) for one in ("a c b x", "a b y z")]
    assert both == {name: max(one[name] for one in alone) for name in both}


def test_identical_texts_score_1_and_an_empty_answer_0() -> None:
    text = "Salt lowers the freezing point of water. Roads are salted in winter."
    assert set(score_rouge(text, [text], stems=True).values()) == {1.0}
    assert set(score_rouge("", [text], stems=True).values()) == {0.0}
    assert set(score_rouge(text, [], stems=True).values()) == {0.0}


def test_sentences_make_lsum_another_number_than_l() -> None:
    found = score_rouge("B comes first. A comes second.", ["A comes second. B comes first."], stems=False)
    assert found["rouge_lsum"] == 1.0
    assert found["rouge_l"] < 1.0


def test_no_sentence_ends_after_an_abbreviation_or_an_initial() -> None:
    text = "Dr. Watt and J. Black met. They spoke of steam, i.e. Heat! Was it 1765? 12 years passed."
    assert split_sentences(text) == (
        "Dr. Watt and J. Black met.", "They spoke of steam, i.e. Heat!", "Was it 1765?", "12 years passed.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "expected"),
    [("relational", "relat"), ("hopping", "hop"), ("filing", "file"), ("skies", "sky"), ("enjoying", "enjoy"),
     ("flies", "fli"), ("died", "die"), ("generalization", "gener"), ("adoption", "adopt"), ("yyyy", "yyyi"),
     ("analogically", "analog"), ("controlling", "control")],
)  # fmt: skip
def test_stems_are_those_of_nltk(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_scores_need_no_language_toolkit() -> None:
    code = "import sys, prony.plugins.tasks.rouge; print('nltk' in sys.modules, 'absl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("output", "references", "match", "f1"),
    [
        ("The Eiffel Tower!", ["Eiffel tower"], 1.0, 1.0),
        ("the tall Eiffel tower", ["Eiffel tower"], 0.0, 0.8),
        ("in Paris", ["London", "Paris, France"], 0.0, 0.5),
        ("", ["Paris"], 0.0, 0.0),
        ("a", ["the"], 1.0, 1.0),
    ],
)
def test_answers_are_scored_by_the_rules_of_squad(output: str, references: list[str], match: float, f1: float) -> None:
    assert exact_match(output, references) == match
    assert token_f1(output, references) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("output", "expected"),
    [("It is spam.", 1.0), ("Label: SPAM", 1.0), ("not spam", 0.0), ("spam or ham", 0.0), ("spammer", 0.0), ("", 0.0)],
)
def test_a_label_counts_where_it_alone_is_named(output: str, expected: float) -> None:
    assert label_accuracy(output, "spam", ["spam", "not spam", "ham"]) == expected
