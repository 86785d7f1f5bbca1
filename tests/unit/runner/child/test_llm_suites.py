"""Suites of language models in this process: what is stamped, checked and compared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony.errors import InputError, SutError
from prony.kinds.llm.child.answers import AnswerSuite
from prony.kinds.llm.child.quality import QualitySuite, compare_predictions, log_probabilities
from prony.kinds.llm.child.suite import LlmSuite, make_ids
from prony.kinds.llm.tokens import TokenTimes, token_frame
from prony.plugins.engines.null import Null, NullLlm
from prony.ports.engine import Array
from prony.ports.llm import LlmFacts, LlmOptions
from prony.runner.child.loop import Stop
from prony.runner.child.readings import take_readings

TEXT = "A text of more than sixteen letters, each of which is a token."


def asked(**changes: Any) -> dict[str, Any]:
    return {
        "model": "llm-0us-0us.null", "unit": "cpu", "threads": 1, "precision": "default", "batch": 1, "prompt": 6,
        "generate": 5, "depth": 0, "passes": 3, "seed": 0, "options": {}, "context": 16,
    } | changes  # fmt: skip


def readings(suite: Any) -> list[dict[str, Any]]:
    (test,) = suite.tests()
    return take_readings(test, 0, Stop())


class ShortLlm(NullLlm):
    """Ends a text although it was asked to go on."""

    def generate(self, tokens: Array, count: int, on_token: Callable[[], object]) -> Array:
        return super().generate(tokens, count - 1, on_token)


class Short(Null):
    def load_llm(self, path: str, options: LlmOptions) -> NullLlm:
        del path
        return ShortLlm(0, 0, 0, options)


def test_every_pass_has_a_prompt_and_exactly_its_tokens() -> None:
    found = readings(LlmSuite(asked(batch=2), Null()))
    assert [len(one["stamps"]) for one in found] == [5, 5, 5]
    assert all(one["prefill"][1] >= one["prefill"][0] for one in found)
    assert all(one["stamps"] == sorted(one["stamps"]) for one in found)


def test_a_run_that_wrote_less_than_was_asked_fails() -> None:
    with pytest.raises(SutError) as told:
        readings(LlmSuite(asked(), Short()))
    assert told.value.code == "token_count"


class ForgetfulLlm(NullLlm):
    """Says that it emptied its cache, and keeps what it holds."""

    def reset(self) -> None:
        """Do nothing."""


class PrefixLlm(NullLlm):
    """Empties its cache, but knows prompts again: those it reads at once."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._known: set[bytes] = set()

    def prefill(self, ids: Array) -> Array:
        if ids.shape[1] > 1 and ids.tobytes() not in self._known:
            self._known.add(ids.tobytes())
            time.sleep(0.02)
        return super().prefill(ids)


class Faulty(Null):
    def __init__(self, kind: type[NullLlm]) -> None:
        self._kind = kind

    def load_llm(self, path: str, options: LlmOptions) -> NullLlm:
        del path
        return self._kind(0, 0, 0, options)


@pytest.mark.parametrize("changes", [{}, {"generate": 0}, {"prompt": 0}, {"depth": 2}])
def test_a_cache_that_was_not_emptied_fails_the_run(changes: dict[str, Any]) -> None:
    with pytest.raises(SutError, match="after it was emptied") as told:
        readings(LlmSuite(asked(**changes), Faulty(ForgetfulLlm)))
    assert told.value.code == "cache_not_empty"


def test_a_prompt_that_is_known_from_before_fails_the_run_although_the_cache_is_empty() -> None:
    suite = LlmSuite(asked(), Faulty(PrefixLlm))
    (test,) = suite.tests()
    test.sample(2)  # the warm-up reads other prompts
    with pytest.raises(SutError, match="kept tokens of the prompt") as told:
        readings(suite)
    assert told.value.code == "cache_not_empty"


def test_a_slow_first_pass_alone_is_no_sign_of_a_cache() -> None:
    class SlowStart(NullLlm):
        """Its first prompt takes long, whatever it is."""

        is_cold = True

        def prefill(self, ids: Array) -> Array:
            if self.is_cold:
                time.sleep(0.05)
            self.is_cold = False
            return super().prefill(ids)

    assert len(readings(LlmSuite(asked(), Faulty(SlowStart)))) == 3


def test_an_answer_into_a_cache_that_was_not_emptied_fails(tmp_path: Path) -> None:
    prompt = {"ids": [5, 6, 7], "most": 2, "goes_on": True}
    (tmp_path / "prompts.json").write_text(json.dumps([prompt, prompt]))
    suite = AnswerSuite(asked(prompts_file=str(tmp_path / "prompts.json")), Faulty(ForgetfulLlm))
    with pytest.raises(SutError) as told:
        readings(suite)
    assert told.value.code == "cache_not_empty"


def test_what_does_not_fit_the_model_is_refused_before_it_runs() -> None:
    with pytest.raises(InputError) as told:
        LlmSuite(asked(model="llm-0us-0us-context8.null"), Null())
    assert told.value.code == "context_exceeded"


def test_a_job_may_only_read_or_only_write() -> None:
    assert [one["stamps"] for one in readings(LlmSuite(asked(generate=0, passes=1), Null()))] == [[]]
    assert readings(LlmSuite(asked(prompt=0, passes=1), Null()))[0]["prefill"] is None


def test_ids_are_the_same_for_every_engine_and_other_ones_in_every_row() -> None:
    ids = make_ids(256, 2, 50, seed=3)
    assert (ids == make_ids(256, 2, 50, seed=3)).all()
    assert (ids[0] != ids[1]).any()
    assert (ids >= 3).all()


def test_the_cache_is_as_full_as_depth_and_tokens_make_it() -> None:
    suite = LlmSuite(asked(depth=8), Null())
    readings(suite)
    assert suite.facts()["details"]["kv_peak_bytes"] == str((8 + 6) * 1024)


def test_the_same_model_agrees_with_itself_and_a_rounded_one_does_not(tmp_path: Path) -> None:
    files = {"ids_file": str(tmp_path / "ids.npy"), "text": TEXT, "positions": 40}
    logs = str(tmp_path / "logs.npy")
    (reference,) = readings(QualitySuite(asked(**files, write_file=logs), Null()))
    (same,) = readings(QualitySuite(asked(**files, reference_file=logs), Null()))
    (rounded,) = readings(QualitySuite(asked(**files, reference_file=logs, precision="int8"), Null()))
    assert len(reference["nll"]) == 40
    assert (max(same["kl"]), min(same["top1"])) == (pytest.approx(0, abs=1e-6), 1.0)
    assert 0 < np.mean(rounded["kl"]) < 0.01


def test_a_divergence_is_that_of_the_textbook() -> None:
    mine, other = (np.log(np.array([one])) for one in ([0.5, 0.5], [0.9, 0.1]))
    wanted = 0.9 * np.log(0.9 / 0.5) + 0.1 * np.log(0.1 / 0.5)
    assert compare_predictions(other, mine)["kl"] == [pytest.approx(wanted)]
    assert log_probabilities(np.array([[0.0, 0.0]])) == pytest.approx(np.log(0.5))


def test_models_of_different_vocabularies_are_not_compared() -> None:
    with pytest.raises(InputError, match="3 tokens in the reference"):
        compare_predictions(np.zeros((1, 3)), np.zeros((1, 2)))


def test_a_text_of_almost_nothing_is_not_scored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only 3 tokens"):
        readings(QualitySuite(asked(text="abc", positions=8, ids_file=str(tmp_path / "ids.npy")), Null()))


def test_guessed_tokens_have_the_stamp_of_their_step_and_are_counted() -> None:
    suite = LlmSuite(asked(draft="lookup", draft_tokens=3, generate=40, depth=8, context=64), Null())
    plain = LlmSuite(asked(generate=40, depth=8, context=64), Null())
    found = readings(suite)
    assert all(len(one["stamps"]) == 40 == sum(tokens for _, tokens, _ in one["steps"]) for one in found)
    assert all(sorted(set(one["stamps"])) == sorted({at_ns for at_ns, _, _ in one["steps"]}) for one in found)
    # A table of 256 next tokens comes round before long, and from then on every guess is right.
    assert max(tokens for one in found for _, tokens, _ in one["steps"]) == 4
    assert [one["steps"] for one in readings(plain)] == [[], [], []]


def test_rates_of_guessed_tokens_count_what_came_after_the_first_step() -> None:
    reading = {
        "prefill": None, "decode_begin_ns": 0, "stamps": [10**6] * 3 + [2 * 10**6] * 2 + [3 * 10**6],
        "steps": [(10**6, 3, 4), (2 * 10**6, 2, 4), (3 * 10**6, 1, 2)],
    }  # fmt: skip
    times = TokenTimes(token_frame(0, [reading]))
    found = times.numbers(prompt=0, batch=1)
    assert found == {"tpot_ms": pytest.approx(2 / 3), "decode_tok_s": pytest.approx(1500.0), "tokens_per_step": 2.0,
                     "accept_rate": pytest.approx(3 / 10)}  # fmt: skip
    assert times.gaps_ms.tolist() == [1.0, 1.0]


def test_a_draft_model_with_another_vocabulary_is_refused() -> None:
    class Two(Null):
        def load_llm(self, path: str, options: LlmOptions) -> NullLlm:
            found = super().load_llm("llm-0us-0us.null", options)
            return found if path.startswith("llm") else OtherWords(0, 0, 0, options)

    class OtherWords(NullLlm):
        def facts(self) -> LlmFacts:
            return replace(super().facts(), vocabulary=99)

    with pytest.raises(InputError, match="another vocabulary") as told:
        LlmSuite(asked(draft="small.null", draft_model="small.null", draft_tokens=3), Two())
    assert told.value.code == "draft_mismatch"
