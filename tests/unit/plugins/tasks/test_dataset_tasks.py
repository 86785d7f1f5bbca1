"""Data set tasks: columns, first questions of conversations, and all their turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from small_tokenizers import write_tokenizer

from prony.errors import InputError, NotFoundError
from prony.plugins.tasks.conversation import Conversation, ConversationOptions
from prony.plugins.tasks.dataset import Dataset, DatasetOptions
from prony.plugins.tasks.sharegpt import ShareGpt, ShareGptOptions
from prony.plugins.tokenizer import Tokenizer
from prony.ports.driver import Prompt

ROWS = [{"prompt": f"question {n}, größer?", "answer": f"answer {n}", "most": 10 + n} for n in range(6)]
SEEDS = {"prompts": 2, "lengths": 3}
TALKS: list[Any] = [
    {"id": "a", "conversations": [
        {"from": "human", "value": "about above"}, {"from": "gpt", "value": "across after again"},
        {"from": "human", "value": "against"}, {"from": "gpt", "value": "almost"},
    ]},
    {"id": "b", "conversations": [{"from": "system", "value": "be"}, {"from": "human", "value": "along"},
                                  {"from": "chatgpt", "value": "already"}]},
    {"id": "c", "conversations": [{"from": "gpt", "value": "nobody asked"}]},
    {"id": "d", "conversations": [{"from": "robot", "value": "beep"}, {"from": "gpt", "value": "boop"}]},
    {"id": "e", "conversations": []},
]  # fmt: skip


def lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return path


def of_dataset(base: Path, count: int = 100, trace: Any = None, **options: Any) -> Sequence[Prompt]:
    return Dataset().prompts(DatasetOptions(**options), count=count, seeds=SEEDS, base=base, lengths=trace)


def of_sharegpt(base: Path, count: int = 100, **options: Any) -> Sequence[Prompt]:
    given = ShareGptOptions(file="talks.json", **{"order": "file", **options})
    return ShareGpt().prompts(given, count=count, seeds=SEEDS, base=base)


def of_conversation(base: Path, count: int = 100, **options: Any) -> Sequence[Prompt]:
    given = ConversationOptions(file="talks.json", **{"order": "file", **options})
    return Conversation().prompts(given, count=count, seeds=SEEDS, base=base)


def last(prompt: Prompt) -> str:
    return prompt.messages[-1]["content"]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    (tmp_path / "talks.json").write_text(json.dumps(TALKS))
    return tmp_path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "list.json", "rows.csv", "rows.parquet"])
def test_every_layout_gives_the_same_prompts(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "list.json":
        path.write_text(json.dumps(ROWS))
    elif path.suffix == ".csv":
        polars.DataFrame(ROWS).write_csv(path)
    elif path.suffix == ".parquet":
        polars.DataFrame(ROWS).write_parquet(path)
    else:
        lines(path, ROWS)
    made = of_dataset(tmp_path, file=name, expected="answer", max_tokens="most")
    assert [last(prompt) for prompt in made] == [row["prompt"] for row in ROWS]
    assert [(prompt.expected, prompt.max_tokens) for prompt in made] == [(row["answer"], row["most"]) for row in ROWS]
    assert all(prompt.input_tokens is None and not prompt.exact_tokens for prompt in made)


def test_a_set_that_ends_gives_fewer(tmp_path: Path) -> None:
    lines(tmp_path / "rows.jsonl", ROWS)
    assert len(of_dataset(tmp_path, 4, file="rows.jsonl")) == 4
    assert len(of_dataset(tmp_path, 40, file="rows.jsonl")) == 6


def test_the_order_is_the_files_or_the_seeds(tmp_path: Path) -> None:
    lines(tmp_path / "rows.jsonl", ROWS)
    made = [last(prompt) for prompt in of_dataset(tmp_path, file="rows.jsonl", order="shuffled")]
    assert made != [row["prompt"] for row in ROWS]
    assert sorted(made) == [row["prompt"] for row in ROWS]
    assert made == [last(prompt) for prompt in of_dataset(tmp_path, file="rows.jsonl", order="shuffled")]


def test_a_system_message_and_whole_messages_may_be_given(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    lines(tmp_path / "rows.jsonl", [{"talk": turns}])
    (made,) = of_dataset(tmp_path, file="rows.jsonl", prompt="talk", system="be brief")
    assert [message["role"] for message in made.messages] == ["system", "user", "assistant", "user"]


def test_a_trace_tells_how_long_answers_are(tmp_path: Path) -> None:
    lines(tmp_path / "rows.jsonl", ROWS[:3])
    made = of_dataset(tmp_path, file="rows.jsonl", output_tokens=5, trace=np.array([[9, 7], [9, -1]]))
    assert [prompt.max_tokens for prompt in made] == [7, 5, 5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"prompt": "x"}\n{"prompt"', "line 2 is not JSON"),
        ("a.jsonl", "[1]\n", "not a JSON object"),
        ("a.jsonl", "\n\n", "has no rows"),
        ("a.json", "[1, 2]", "entry 0"),
        ("a.json", "[", "not JSON"),
        ("a.jsonl", '{"question": "x"}\n', "row 1: no prompt"),
        ("a.jsonl", '{"prompt": ""}\n', "row 1: no prompt"),
        ("a.csv", "prompt\n\xff", "UTF-8"),
        ("a.parquet", "PAR", "not a Parquet file"),
        ("a.txt", "x", "an unknown file extension"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        of_dataset(tmp_path, file=name)
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_the_columns_that_are_there_are_told(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"question": "x", "id": 1}])
    with pytest.raises(InputError) as caught:
        of_dataset(tmp_path, file="a.jsonl")
    assert "question, id" in caught.value.hint


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="data set not found"):
        of_dataset(tmp_path, file="absent.jsonl")


def test_first_questions_are_asked_and_conversations_without_one_left_out(talks: Path) -> None:
    made = of_sharegpt(talks)
    assert [[message["content"] for message in prompt.messages] for prompt in made] == [
        ["about above"],
        ["be", "along"],
    ]
    assert [(prompt.max_tokens, prompt.exact_tokens, prompt.input_tokens) for prompt in made] == [(256, True, None)] * 2
    assert all(prompt.session is None for prompt in made)


def test_with_a_tokenizer_answers_are_as_long_as_the_sets_own(talks: Path) -> None:
    path = write_tokenizer(talks / "tokenizer.json", "byte-level")
    count = Tokenizer(path).count
    made = of_sharegpt(talks, tokenizer="tokenizer.json")
    assert [prompt.max_tokens for prompt in made] == [count("across after again"), count("already")]
    assert [prompt.input_tokens for prompt in made] == [count("about above"), count("be\n\nalong")]
    assert [prompt.max_tokens for prompt in of_sharegpt(talks, tokenizer=".", output_tokens=5)] == [5, 5]
    short = of_sharegpt(talks, tokenizer=".", max_input_tokens=count("about above"))
    assert [last(prompt) for prompt in short] == ["about above"]


def test_longest_prompts_cannot_be_left_out_without_a_tokenizer(talks: Path) -> None:
    with pytest.raises(InputError, match="needs a tokenizer"):
        of_sharegpt(talks, max_input_tokens=5)


def test_a_conversation_is_asked_turn_by_turn_with_the_sets_own_history(talks: Path) -> None:
    made = of_conversation(talks)
    assert [[message["content"] for message in prompt.messages] for prompt in made] == [
        ["about above"],
        ["about above", "across after again", "against"],
    ]
    assert [prompt.session for prompt in made] == [0, 0]


def test_conversations_may_be_shortened_and_short_ones_kept(talks: Path) -> None:
    made = of_conversation(talks, min_turns=1)
    assert [prompt.session for prompt in made] == [0, 0, 1]
    assert [prompt.session for prompt in of_conversation(talks, min_turns=1, max_turns=1)] == [0, 1]
    assert len(of_conversation(talks, 1)) == 1


def test_openais_messages_are_read_too(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (tmp_path / "talks.json").write_text(json.dumps([{"messages": turns * 2}]))
    assert [len(prompt.messages) for prompt in of_conversation(tmp_path)] == [1, 3]


def test_a_set_without_conversations_is_told(tmp_path: Path) -> None:
    (tmp_path / "talks.json").write_text(json.dumps([{"conversations": [{"from": "human", "value": "hello?"}]}]))
    with pytest.raises(InputError, match="no question with an answer"):
        of_sharegpt(tmp_path)
