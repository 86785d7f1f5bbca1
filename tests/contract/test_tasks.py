"""What every registered task promises: options that explain themselves, and the same prompts for the same seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from prony.model.base import Noun
from prony.model.metric import QUALITY_METRICS
from prony.ports.driver import ItemAnswer, PredictsTexts, Prompt, ScoresAnswers, Task
from prony.ports.plugins import TASKS, find_plugins, load_plugin

TALKS = [
    {"prompt": f"question {n}", "question": f"what is {n}?", "answers": [str(n)], "text": f"text {n}", "label": "odd",
     "conversations": [
        {"from": "human", "value": f"question {n}"}, {"from": "gpt", "value": f"answer {n}"},
        {"from": "human", "value": f"and {n}?"}, {"from": "gpt", "value": f"also {n}"},
    ]}
    for n in range(12)
]  # fmt: skip
# What a task cannot do without.
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "dataset": {"file": "talks.jsonl"},
    "sharegpt": {"file": "talks.jsonl"},
    "conversation": {"file": "talks.jsonl"},
    "texts": {"texts": ["one question", "and another"]},
    "qa": {"file": "talks.jsonl"},
    "classify": {"file": "talks.jsonl", "labels": ["odd", "even"]},
}


@pytest.fixture(params=sorted(find_plugins(TASKS)))
def task(request: pytest.FixtureRequest) -> Task:
    made: Task = load_plugin(TASKS, request.param)()
    return made


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in TALKS))
    return tmp_path


def prompts(task: Task, base: Path, count: int = 8, seed: int = 1, **more: Any) -> Sequence[Prompt]:
    options = task.Options(**NEEDED.get(task.name, {}))
    return task.prompts(options, count=count, seeds={"prompts": seed, "lengths": seed}, base=base, **more)


class TestEveryTask:
    def test_is_registered_by_its_own_name(self, task: Task) -> None:
        assert task.name in find_plugins(TASKS)

    def test_its_options_are_a_strict_noun_that_explains_every_field(self, task: Task) -> None:
        assert issubclass(task.Options, Noun)
        assert [name for name, field in task.Options.model_fields.items() if not field.description] == []
        assert json.dumps(task.Options.model_json_schema())
        options: type[Any] = task.Options
        with pytest.raises(ValidationError):
            options(**NEEDED.get(task.name, {}), no_such_option=1)

    def test_asks_what_the_seeds_say_and_no_more_than_is_wanted(self, task: Task, base: Path) -> None:
        made = prompts(task, base)
        assert len(made) == 8
        assert list(made) == list(prompts(task, base))
        assert list(made[:3]) == list(prompts(task, base, count=3))

    def test_every_prompt_has_something_to_ask_and_a_limit(self, task: Task, base: Path) -> None:
        for prompt in prompts(task, base):
            assert prompt.messages[-1]["role"] == "user"
            assert all(message["content"] for message in prompt.messages)
            limit = prompt.window if isinstance(task, PredictsTexts) else prompt.max_tokens
            assert limit is not None
            assert limit > 0

    def test_a_trace_tells_how_long_answers_are(self, task: Task, base: Path) -> None:
        if isinstance(task, PredictsTexts):
            pytest.skip("nothing is answered")
        lengths = np.array([[-1, 100 + n] for n in range(5)], dtype=np.int64)
        made = prompts(task, base, count=5, lengths=lengths)
        assert [prompt.max_tokens for prompt in made] == [100, 101, 102, 103, 104]

    def test_nobody_has_counted_tokens_without_a_tokenizer(self, task: Task, base: Path) -> None:
        assert all(prompt.input_tokens is None for prompt in prompts(task, base))


class TestTasksThatScore:
    def test_an_answer_equal_to_its_reference_scores_1_and_an_empty_one_0(self, task: Task, base: Path) -> None:
        if not isinstance(task, ScoresAnswers) or isinstance(task, PredictsTexts):
            pytest.skip("asks only, or has no references")
        options = task.Options(**NEEDED.get(task.name, {}))
        items = [prompt.item for prompt in prompts(task, base)]
        assert all(items)
        right = [ItemAnswer(item.name, item.references[0], item.references) for item in items if item is not None]
        empty = [ItemAnswer(one.item, "", one.references) for one in right]
        assert {number for numbers in task.score(options, right).values() for number in numbers} == {1.0}
        assert {number for numbers in task.score(options, empty).values() for number in numbers} == {0.0}
        assert set(task.score(options, right)) <= set(QUALITY_METRICS)
        assert task.scoring(options)
