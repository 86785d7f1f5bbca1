"""A task on an engine: prompts fit the model, answers end where they should, are kept, timed and scored."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.app.results import summary_of
from prony.app.runner import run_here
from prony.errors import InputError
from prony.instruments.kept_answers import read_answers
from prony.kinds.llm.child.answers import AnswerSuite
from prony.load.processes import ClientProcesses
from prony.model.result import Result
from prony.plugins.engines.null import Null, NullLlm
from prony.ports.llm import LlmOptions
from prony.recipe import loads
from prony.runner.child.loop import Stop
from prony.store.folder import read_nouns
from prony.store.home import Home

SCORER = f"""{shlex.quote(sys.executable)} -c "
import sys
for line in sys.stdin: print(1)" """


def run(folder: Path, model: str, **prompts: Any) -> Path:
    """Ask three articles of an engine of known speed, once, and return the result folder."""
    (folder / model).touch()
    workload = {
        "kind": "llm", "engine": "null", "model": str(folder / model), "task": "summarize",
        "prompts": {"articles": 3, "output_tokens": 20} | prompts,
    }  # fmt: skip
    text = json.dumps({"name": "asked", "workload": workload, "measure": {"repeats": 1, "warmup": 0}})
    (job,) = loads(text, "json", "the test").jobs("x1")
    with ClientProcesses(ahead=0) as none:
        run_here([job], folder / "result", Home(folder / "home").create(), on_event=lambda _: None, clients=none)
    return folder / "result"


def result_of(folder: Path) -> Result:
    return read_nouns(folder).result


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("answered"), "llm-0us-0us-context900.null", scorer=SCORER)


def test_answers_are_kept_with_exact_counts_and_the_stamps_of_their_tokens(answered: Path) -> None:
    answers = [one for one in read_answers(answered) if one.repetition == 0]
    assert [one.item for one in answers] == sorted(one.item for one in answers)
    assert len(answers) == 3
    samples = pl.read_parquet(answered / "samples.parquet").filter(pl.col("repetition") == 0)
    stamped = samples.filter(pl.col("name").str.starts_with("token_ms/")).height
    assert stamped == sum(one.parts[0].output_tokens or 0 for one in answers)


def test_scores_stand_beside_the_rates_of_the_same_answers(answered: Path) -> None:
    found = summary_of(answered).estimates
    assert {"rouge_1.mean", "rouge_lsum.mean", "prefill_tok_s.p50", "decode_tok_s.p50"} <= found.keys()
    assert found["output_tokens_per_s.p50"].value > 0
    assert found["own_score.mean"].value == 1


def test_what_does_not_fit_the_model_is_cut_and_told(answered: Path) -> None:
    effective = result_of(answered).effective
    assert effective is not None
    assert effective.details["prompt form"] == "plain text: the model has no chat template"
    assert effective.details["cut"].startswith("3 of 3 texts were too long")
    assert "so that all prompts fit into 900 tokens" in effective.details["longest"]


def test_what_the_recipe_does_not_want_cut_fails_in_words(tmp_path: Path) -> None:
    failure = result_of(run(tmp_path, "llm-0us-0us-context900.null", fit="refuse")).failure
    assert failure is not None
    assert (failure.code, "context is 900" in failure.message) == ("context_exceeded", True)


@pytest.mark.parametrize(("changes", "word"), [({"batch": 2}, "only for seeded ids"), ({"task": None}, "needs a task")])
def test_settings_of_ids_do_not_go_with_a_task(changes: dict[str, Any], word: str) -> None:
    workload = {"kind": "llm", "engine": "null", "model": "m", "task": "summarize", "prompts": {"articles": 2}}
    with pytest.raises(InputError, match=word):
        loads(json.dumps({"name": "x", "workload": workload | changes}), "json", "the test")


class CountingLlm(NullLlm):
    """Writes 1, 2, 3, ... and then its end."""

    def __init__(self, options: LlmOptions) -> None:
        super().__init__(0, 0, 0, options)
        self._next = (self._next * 0 + 1).cumsum() % 5


class Counting(Null):
    def load_llm(self, path: str, options: LlmOptions) -> NullLlm:
        del path
        return CountingLlm(options)


@pytest.mark.parametrize("draft", ["none", "lookup", "model"])
@pytest.mark.parametrize(
    ("most", "goes_on", "text", "finish"),
    [(9, False, "\x02\x03\x04", "stop"), (2, False, "\x02\x03", "length"), (3, False, "\x02\x03\x04", "length"),
     (6, True, "\x02\x03\x04\x00\x01\x02", "length")],
)  # fmt: skip
def test_an_answer_ends_at_its_mark_or_its_limit(
    most: int, goes_on: bool, text: str, finish: str, draft: str, tmp_path: Path
) -> None:
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps([{"ids": [7, 1], "most": most, "goes_on": goes_on}]))
    options = {"model": "m", "unit": "cpu", "threads": 1, "precision": "default", "batch": 1, "context": 16}
    guesses = {"draft": draft, "draft_model": draft, "draft_tokens": 2}
    suite = AnswerSuite(options | guesses | {"options": {}, "prompts_file": str(file)}, Counting())
    (test,) = suite.tests()
    assert test.read is not None
    (found,) = test.read(Stop())
    assert (found["text"], found["finish"], len(found["stamps"])) == (text, finish, len(text))
    assert found["stamps"][0] == found["prefill"][1]
    assert found["input_tokens"] == 2
