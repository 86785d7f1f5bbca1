"""Every choice of the menu, answered as a person would: the command that it makes is one that Prony takes."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from prony.cli.commands.menu import CHOICES, Back, Terminal, recipe
from prony.cli.main import COMMANDS

ROWS = [{"id": "new1", "name": "redis", "state": "complete"}, {"id": "old2", "name": "redis", "state": "failed"}]
RECIPES = Path(__file__).parents[3] / "recipes"
SERVER = ("--server", "http://127.0.0.1:1")
# What is typed, and what comes of it.
ANSWERS: dict[str, tuple[list[str], list[str]]] = {
    "run": (["mine.yaml", "1,2", "local"], ["run", "mine.yaml", "--clients", "1,2", "--on", "local", *SERVER]),
    "list": ([], ["list", *SERVER]),
    "show": (["2"], ["show", "old2", *SERVER]),
    "watch": (["abc"], ["watch", "abc", *SERVER]),
    "logs": (["1"], ["logs", "new1", *SERVER]),
    "stop": (["1", "y"], ["cancel", "new1", *SERVER]),
    "collect": (["1", "2", ""], ["export", "new1", "--format", "ai-factory", "--to", "new1", *SERVER]),
    "metrics": (["1"], ["report", "new1", "--format", "csv", "--out", "-", *SERVER]),
    "report": (["1", "2", "x.md"], ["report", "new1", "--format", "md", "--out", "x.md", *SERVER]),
    "compare": (["2", "1"], ["compare", "old2", "new1", *SERVER]),
    "sweep-report": (["1, 2", "e2e_ms.p99=10"], ["sweep-report", "new1", "old2", "--slo", "e2e_ms.p99=10", *SERVER]),
    "rerun": (["1"], ["rerun", "new1", *SERVER]),
    "import": (["their/results"], ["import", "their/results"]),
    "web": (["8080"], ["server", "--port", "8080"]),
}


class Scripted(Terminal):
    """Answers from a list, and remembers what it was told."""

    def __init__(self, answers: Sequence[str], rows: Sequence[dict[str, Any]] = ROWS) -> None:
        super().__init__(SERVER)
        self._answers: Iterator[str]
        self._rows: Sequence[dict[str, Any]]
        object.__setattr__(self, "_answers", iter(answers))
        object.__setattr__(self, "_rows", rows)

    def tell(self, text: str = "") -> None:
        """Nobody reads it."""

    def ask(self, question: str) -> str:  # noqa: ARG002 - the answers are known
        return next(self._answers)

    def answer(self, arguments: Sequence[str]) -> Any:
        assert list(arguments[-2:]) == list(SERVER)
        return self._rows


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.word)
def test_every_choice_makes_a_command_that_prony_takes(
    choice: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answers, expected = ANSWERS[choice.word]
    made = choice.arguments(Scripted(answers))
    assert made == expected
    parser = ArgumentParser(exit_on_error=False)
    importlib.import_module(f"prony.cli.commands.{COMMANDS[made[0]][0]}").arguments(parser)
    parser.parse_args(made[1:])


@pytest.mark.parametrize("word", ["show", "stop", "compare", "sweep-report", "import"])
def test_enter_goes_back(word: str) -> None:
    (choice,) = (one for one in CHOICES if one.word == word)
    with pytest.raises(Back):
        choice.arguments(Scripted([""]))


def test_nothing_is_stopped_without_a_yes() -> None:
    (choice,) = (one for one in CHOICES if one.word == "stop")
    with pytest.raises(Back):
        choice.arguments(Scripted(["1", ""]))


def test_where_nothing_was_run_there_is_nothing_to_choose() -> None:
    (choice,) = (one for one in CHOICES if one.word == "show")
    with pytest.raises(Back):
        choice.arguments(Scripted([], rows=[]))


def test_only_recipes_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("name: x\nworkload: {kind: model, model: 'zoo:tiny', engine: onnxruntime}\n")
    (tmp_path / "descriptor.toml").write_text(
        (RECIPES / "benchmark-ai" / "hello-world" / "descriptor.toml").read_text()
    )
    (tmp_path / "package.json").write_text('{"name": "x", "scripts": {"test": "x"}}')
    (tmp_path / "compose.yaml").write_text("services: {web: {image: x}}\n")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    terminal = Scripted(["1"])
    offered: list[str] = []
    object.__setattr__(terminal, "tell", offered.append)
    assert recipe(terminal) == "descriptor.toml"
    assert [line.split()[-1] for line in offered] == ["descriptor.toml", "mine.yaml"]
