"""The task that asks how likely texts are: its prompts, its scores, and what endpoints tell."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from prony.errors import InputError
from prony.kinds.llm.child.answers import split_windows
from prony.plugins.drivers.openai.chunks import digest_likelihoods
from prony.plugins.tasks.perplexity import Perplexity, PerplexityOptions
from prony.ports.driver import Cause, ItemAnswer, TextLikelihood, format_likelihood, read_likelihood


def test_its_own_articles_and_those_of_a_file_are_texts_to_predict(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps({"id": "one", "text": "A text."}) + "\n")
    seeds = {"prompts": 0, "lengths": 0}
    own = Perplexity().prompts(PerplexityOptions(texts=2), count=99, seeds=seeds, base=tmp_path)
    (mine,) = Perplexity().prompts(PerplexityOptions(file="mine.jsonl"), count=99, seeds=seeds, base=tmp_path)
    assert [one.window for one in own] == [512, 512]
    assert (mine.messages[0]["content"], mine.item is not None and mine.item.name) == ("A text.", "one")


def test_scores_are_by_token_and_by_byte() -> None:
    told = format_likelihood(TextLikelihood(tokens=10, text_bytes=40, nat=20.0))
    scores = Perplexity().score(PerplexityOptions(), [ItemAnswer("one", told, ())])
    assert scores == {"token_nll": [2.0], "bits_per_byte": [pytest.approx(20 / math.log(2) / 40)]}


def test_an_answer_in_words_is_no_likelihood() -> None:
    with pytest.raises(InputError, match="no likelihood"):
        read_likelihood("It is blue.")


@pytest.mark.parametrize(("count", "window"), [(1, 8), (5, 8), (8, 8), (9, 8), (40, 8), (41, 16)])
def test_every_token_but_the_first_is_predicted_once_from_half_a_window_or_more(count: int, window: int) -> None:
    found = list(split_windows(count, window))
    assert [one for _, end, first in found for one in range(first, end)] == list(range(1, count))
    assert all(end - begin <= window for begin, end, _ in found)
    assert all(first - begin >= window // 2 for begin, _, first in found[1:])


def test_an_endpoint_that_repeats_a_prompt_tells_its_likelihood() -> None:
    choice = {"text": "", "logprobs": {"token_logprobs": [None, -1.5, -0.5]}}
    body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 3}}).encode()
    digest = digest_likelihoods(body, 12)
    assert (digest.cause, digest.input_tokens) == (Cause.OK, 3)
    assert read_likelihood(digest.text) == TextLikelihood(tokens=2, text_bytes=12, nat=2.0)


@pytest.mark.parametrize(
    "body", [b"{}", b"nothing", b'{"choices": [{"text": "Blue."}]}', b'{"choices": [{"logprobs": 1}]}']
)
def test_an_endpoint_that_does_not_is_no_success(body: bytes) -> None:
    digest = digest_likelihoods(body, 12)
    assert digest.cause is Cause.MALFORMED
    assert "echo and logprobs" in digest.detail
