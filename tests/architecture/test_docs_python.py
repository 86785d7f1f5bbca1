"""The page about Python tells everything that programs and sessions of pytest can use."""

from __future__ import annotations

import ast

import yaml

from prony.api import PUBLIC
from prony.api.functions import BenchOptions

from .house import PACKAGE, ROOT, page, rows, tree


def test_every_function_and_every_keyword_is_told() -> None:
    assert [name for name in PUBLIC if f"prony.{name}" not in page("python")] == []
    assert [name for name in BenchOptions.__annotations__ if f"`{name}" not in page("python")] == ["command"]
    assert "prony.bench(command=" in page("python")


def test_every_option_of_the_pytest_plugin_is_told() -> None:
    calls = [node for node in ast.walk(tree(PACKAGE / "api" / "pytest_plugin.py")) if isinstance(node, ast.Call)]
    added = [
        node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in ("addoption", "addini")
    ]
    names = {str(node.args[0].value) for node in added if isinstance(node.args[0], ast.Constant)}
    assert len(names) > 9
    assert {name for name in names if f"`{name}" not in page("python")} == {"--prony-child"}


def test_every_input_of_the_action_is_told_and_used() -> None:
    text = (ROOT / "action.yml").read_text()
    inputs = yaml.safe_load(text)["inputs"]
    table = rows(page("ci"))
    assert {row[0].strip("`") for row in table[1:]} == set(inputs)
    assert [name for name in inputs if f"inputs.{name}" not in text] == []
