"""Collect from the source what errors of the surroundings say and what they advise, for docs/troubleshoot.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.sources import parse_source

SOURCE = Path(__file__).parents[1] / "src" / "prony"
# Kinds whose cause lies outside of the recipe: on the machine, in the network, in the database, in access rights.
KINDS = ("CapacityError", "StoreError", "TransportError", "AccessError")
_HEAD = "| code | it says | what to do |"


class ErrorHint(NamedTuple):
    """An error as the source raises it; `...` stands for what is known only when it happens."""

    code: str
    message: str
    hint: str


@cache
def collect_hints() -> tuple[ErrorHint, ...]:
    """Return one line for each code: the first in the source whose message and hint are both written there."""
    found: dict[str, ErrorHint] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for one in _read_hints(parse_source(text)) if any(kind in text for kind in KINDS) else ():
            found.setdefault(one.code, one)
    return tuple(found[code] for code in sorted(found))


def write_hint_table(page: str) -> str:
    """Return the page with its table of codes as the source has them."""
    before, head, after = page.partition(_HEAD)
    if not head:
        raise ValueError(f"docs/troubleshoot.md: no line {_HEAD}")
    rest = after.partition("\n\n")[2]
    lines = [head, "|---|---|---|"]
    lines += [f"| `{one.code}` | {_cell(one.message)} | {_cell(one.hint)} |" for one in collect_hints()]
    return before + "\n".join(lines) + "\n" + (f"\n{rest}" if rest else "")


def _read_hints(tree: ast.Module) -> Iterator[ErrorHint]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
            given = {keyword.arg: _text(keyword.value) for keyword in node.keywords}
            one = ErrorHint(given.get("code", ""), _text(node.args[0]), given.get("hint", ""))
            if all(_is_written(part) for part in one):
                yield one


def _text(node: ast.expr) -> str:
    """Return what an expression says, with `...` for each part that is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "..."


def _is_written(text: str) -> bool:
    """Is there more than what is computed?"""
    return sum(letter.isalpha() for letter in text) >= 3


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
