"""The synthetic task: exact token lengths, and the same prompts for the same seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from small_tokenizers import KINDS, write_tokenizer

from prony.errors import CapacityError, InputError, NotFoundError
from prony.plugins.tasks.spread import draw_lengths
from prony.plugins.tasks.synthetic import Synthetic, SyntheticOptions
from prony.plugins.tokenizer import Tokenizer
from prony.ports.driver import Prompt


def prompts(
    count: int = 20,
    *,
    base: Path = Path(),
    words: int = 2,
    sizes: int = 3,
    trace: list[tuple[int, int]] | None = None,
    **options: Any,
) -> Sequence[Prompt]:
    lengths = None if trace is None else np.array(trace, dtype=np.int64)
    seeds = {"prompts": words, "lengths": sizes}
    return Synthetic().prompts(SyntheticOptions(**options), count=count, seeds=seeds, base=base, lengths=lengths)


def text(prompt: Prompt) -> str:
    (message,) = prompt.messages
    return message["content"]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizers") / f"{request.param}.json", request.param)


class TestWithATokenizer:
    def test_prompts_have_exactly_their_tokens(self, tokenizer: Path) -> None:
        made = prompts(60, tokenizer=str(tokenizer), input_tokens="uniform 1:300", output_tokens="normal 50:10")
        count = Tokenizer(tokenizer).count
        assert [count(text(prompt)) for prompt in made] == [prompt.input_tokens for prompt in made]
        assert len({prompt.input_tokens for prompt in made}) > 20
        assert len({text(prompt) for prompt in made}) > 50

    def test_a_shared_prefix_is_part_of_every_prompt_and_no_more_than_it(self, tokenizer: Path) -> None:
        made = prompts(9, tokenizer=str(tokenizer), input_tokens="uniform 20:40", shared_prefix_tokens=30)
        words = [text(prompt).split(" ") for prompt in made]
        shared = max(words, key=len)[:30]
        assert all(one[:30] == shared[: len(one)] for one in words)
        assert len({tuple(one) for one in words if len(one) > 30}) > 1
        assert [len(one) for one in words] == [prompt.input_tokens for prompt in made]

    def test_a_trace_tells_lengths_and_where_it_does_not_others_are_drawn(self, tokenizer: Path) -> None:
        made = prompts(3, tokenizer=str(tokenizer), input_tokens=8, output_tokens=9, trace=[(5, 6), (-1, 7)])
        assert [(prompt.input_tokens, prompt.max_tokens) for prompt in made] == [(5, 6), (8, 7), (8, 9)]

    def test_it_is_found_beside_the_recipe(self, tokenizer: Path) -> None:
        assert prompts(1, base=tokenizer.parent, tokenizer=tokenizer.name, input_tokens=4)[0].input_tokens == 4

    def test_words_are_not_tokens(self, tokenizer: Path) -> None:
        with pytest.raises(ValidationError, match="input_tokens"):
            SyntheticOptions(tokenizer=str(tokenizer), input_words=5)


def test_a_tokenizer_that_has_no_everyday_words_lends_its_own(tmp_path: Path) -> None:
    path = write_tokenizer(tmp_path / "tokenizer.json", "metaspace", ["zab", "zeb", "zib"])
    made = prompts(5, base=tmp_path, tokenizer=".", input_tokens=9)
    assert [Tokenizer(path).count(text(prompt)) for prompt in made] == [9] * 5


def test_a_tokenizer_without_a_word_of_one_token_is_told(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json", "byte-level", ["7"])
    with pytest.raises(InputError, match="exactly one token"):
        prompts(5, base=tmp_path, tokenizer=".", input_tokens=9)


class TestWithoutATokenizer:
    def test_prompts_have_their_words_and_nobody_calls_them_tokens(self) -> None:
        made = prompts(30, input_words="uniform 5:9", shared_prefix_words=4)
        sizes = [len(text(prompt).split()) for prompt in made]
        assert set(sizes) == {5, 6, 7, 8, 9}
        assert all(prompt.input_tokens is None for prompt in made)
        assert len({tuple(text(prompt).split()[:4]) for prompt in made}) == 1

    def test_an_exact_answer_is_asked_for_unless_told_otherwise(self) -> None:
        first = prompts(1, output_tokens=17)[0]
        assert (first.max_tokens, first.exact_tokens) == (17, True)
        assert prompts(1, exact=False)[0].exact_tokens is False

    @pytest.mark.parametrize("options", [{"input_tokens": 5}, {"shared_prefix_tokens": 5}])
    def test_tokens_cannot_be_counted(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValidationError, match="need a tokenizer"):
            SyntheticOptions(**options)


def test_the_same_seeds_give_the_same_prompts_whatever_the_count() -> None:
    many = prompts(50, input_words="lognormal 20:10", output_tokens="uniform 1:99")
    few = prompts(10, input_words="lognormal 20:10", output_tokens="uniform 1:99")
    assert list(many[:10]) == list(few)


def test_seeds_of_words_and_of_lengths_are_apart() -> None:
    spread: dict[str, Any] = {"input_words": "uniform 5:90", "output_tokens": "uniform 5:90"}
    one, other = prompts(20, **spread), prompts(20, words=9, **spread)
    sizes = [[(len(text(p).split()), p.max_tokens) for p in made] for made in (one, other)]
    assert sizes[0] == sizes[1]
    assert [text(prompt) for prompt in one] != [text(prompt) for prompt in other]
    longer = prompts(20, sizes=9, **spread)
    assert [prompt.max_tokens for prompt in longer] != [prompt.max_tokens for prompt in one]
    assert text(longer[0]).split()[:5] == text(one[0]).split()[:5]


@pytest.mark.parametrize(
    ("spread", "mean", "deviation"),
    [
        ("constant 7", 7, 0), ("256", 256, 0), ("uniform 10:20", 15, 3.16), ("normal 100:10", 100, 10),
        ("lognormal 100:50", 100, 50),
    ],
)  # fmt: skip
def test_lengths_have_the_mean_and_the_deviation_that_were_asked(spread: str, mean: float, deviation: float) -> None:
    found = draw_lengths(spread, 40_000, np.random.Generator(np.random.PCG64(1)))
    assert found.mean() == pytest.approx(mean, rel=0.01)
    assert found.std() == pytest.approx(deviation, rel=0.05)
    assert found.min() >= 1


def test_no_length_is_less_than_1() -> None:
    assert draw_lengths("normal 1:50", 100, np.random.Generator(np.random.PCG64(1))).min() == 1


@pytest.mark.parametrize(
    "spread", ["", "0", "-5", "5:6", "uniform 5", "uniform 9:3", "zipf 1:2", "uniform 1.5:3", 2.5, True, None]
)
def test_a_spread_that_makes_no_sense_is_refused(spread: Any) -> None:
    with pytest.raises(ValidationError):
        SyntheticOptions(output_tokens=spread)


def test_a_tokenizer_that_is_not_there_or_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="tokenizer not found"):
        prompts(base=tmp_path, tokenizer="absent.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="is not a tokenizer"):
        prompts(base=tmp_path, tokenizer=".")


def test_without_the_package_the_install_line_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CapacityError) as caught:
        Tokenizer(tmp_path)
    assert caught.value.hint == 'pip install "prony[tokenizers]"'
