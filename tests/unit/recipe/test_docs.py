"""The page about recipes says everything, and what it shows is what happens; the examples load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.model.recipe import json_schema
from prony.recipe import load, loads
from prony.recipe.formats import SUFFIXES, Format, format_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "recipe.md").read_text()
RECIPES = sorted(path for path in (ROOT / "recipes").rglob("*") if path.suffix in SUFFIXES)
BLOCK = re.compile(r"(?:<!-- wrong: (?P<name>\S+) -->\n)?```(?P<form>yaml|toml|json)\n(?P<text>.*?)```", re.DOTALL)
WRONG = re.compile(
    BLOCK.pattern.replace(")?```(?P<form>", ")```(?P<form>", 1) + r".*?```text\n(?P<said>.*?)```", re.DOTALL
)


def fields(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for inner in node.values():
            yield from fields(inner)


@pytest.mark.parametrize("name", sorted({name for name, _ in fields(json_schema())}))
def test_the_page_names_every_key(name: str) -> None:
    assert f"| `{name}` |" in PAGE


def shown_recipes() -> list[tuple[Format, str]]:
    return [(match["form"], match["text"]) for match in BLOCK.finditer(PAGE) if not match["name"]]  # type: ignore[misc]


def test_the_recipes_on_the_page_load() -> None:
    loaded = [loads(text, form) for form, text in shown_recipes()]
    assert len(loaded) == 5
    assert len(list(WRONG.finditer(PAGE))) == 2
    assert [len(one.jobs("x")) for one in loaded] == [1, 5, 2, 5, 1]


@pytest.mark.parametrize("example", list(WRONG.finditer(PAGE)), ids=lambda match: match["name"])
def test_the_errors_on_the_page_are_what_is_said(example: re.Match[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        loads(example["text"], format_of(Path(example["name"])), example["name"])
    assert caught.value.message + "\n" == example["said"]


def test_the_option_on_the_page_is_answered_as_it_says() -> None:
    with pytest.raises(RecipeError) as caught:
        loads(shown_recipes()[0][1], overrides=["workload.thread=4"])
    assert f"```text\n{caught.value.message}\n```" in PAGE
    assert f"the hint `{caught.value.hint}`" in PAGE


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_every_example_loads_and_becomes_jobs(path: Path) -> None:
    assert load(path).jobs("x1")


def test_the_three_yolo_recipes_are_one() -> None:
    assert len({load(path).recipe.model_dump_json() for path in RECIPES if path.stem == "yolo"}) == 1
    assert [path.suffix for path in RECIPES if path.stem == "yolo"] == [".json", ".toml", ".yaml"]


def test_the_quickstart_crosses_two_models_with_two_engines() -> None:
    jobs = load(ROOT / "recipes" / "quickstart.yaml").jobs("x1")
    assert {(job.work(ModelWorkload).model, job.work(ModelWorkload).engine) for job in jobs} == {
        (model, engine) for model in ("zoo:mobilenet-v2", "zoo:bert-mini") for engine in ("onnxruntime", "openvino")
    }
