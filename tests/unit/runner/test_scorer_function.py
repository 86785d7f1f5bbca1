"""A scorer that is a function in a file of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import SutError
from prony.instruments.kept_answers import WholeAnswer
from prony.model.answer import KeptAnswer, ScoringOptions
from prony.ports.find_task import make_options_absolute
from prony.runner.scorer import ScorerOrder, run_scorer

ANSWERS = [WholeAnswer(0, 0, (KeptAnswer(repetition=0, item=name, output=name * 3),)) for name in ("a", "bc")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("def size(text):\n    return len(text)\n")
    path = tmp_path / "mine.py"
    path.write_text(
        "import beside\n"
        "def score(answer):\n    print('seen', answer['id'])\n    return beside.size(answer['output'])\n"
        "def fail(answer):\n    raise ValueError('no idea')\n"
        "def hang(answer):\n    while True: pass\n"
    )
    return path


def test_a_function_scores_each_answer_and_may_print(file: Path) -> None:
    assert run_scorer(ScorerOrder(f"{file}:score", 60), ANSWERS) == [{"score": 3.0}, {"score": 6.0}]


@pytest.mark.parametrize(
    ("name", "said"), [("fail", "no idea"), ("missing", "has no function missing"), ("hang", "timed out")]
)
def test_one_that_fails_costs_its_scores_in_words(name: str, said: str, file: Path) -> None:
    with pytest.raises(SutError, match=said):
        run_scorer(ScorerOrder(f"{file}:{name}", 1 if name == "hang" else 60), ANSWERS)


def test_its_file_is_relative_to_the_recipe(file: Path) -> None:
    found = make_options_absolute({"scorer": "mine.py:score"}, ScoringOptions, file.parent)
    assert found == {"scorer": f"{file}:score"}
