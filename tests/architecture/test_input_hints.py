"""An error of input or of what this machine lacks says what to do: each raise of it gives a hint."""

from __future__ import annotations

import ast

from tools.sources import statements

from .house import PACKAGE, modules, tree

KINDS = {"InputError", "NotFoundError", "CapacityError"}
# Another program's protocol words these, and its clients read no hint.
WITHOUT = ("compat/sark/", "store/campaigns.py")


def raised_without_hint(source: ast.Module) -> list[int]:
    """Return the lines that raise such an error with no hint."""
    calls = [node.exc for node in statements(source) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    return sorted(
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in KINDS
        and not any(keyword.arg in ("hint", None) for keyword in call.keywords)
    )


def test_every_error_of_input_or_capacity_says_what_to_do() -> None:
    found = [
        f"{name}:{line}"
        for path in modules().values()
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith(WITHOUT)
        for line in raised_without_hint(tree(path))
    ]
    assert found == []


def test_a_raise_without_a_hint_is_found() -> None:
    text = "raise InputError('x')\nraise InputError('x', hint='y')\nraise CapacityError('x', code='y')"
    assert raised_without_hint(ast.parse(text)) == [1, 3]
