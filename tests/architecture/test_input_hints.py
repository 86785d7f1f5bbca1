"""An error that a person can correct says what to do: each raise of it gives a hint, or a code that has one."""

from __future__ import annotations

import ast

from prony.error_codes import ERROR_CODES
from tools.sources import statements

from .house import PACKAGE, modules, tree

KINDS = {
    "InputError", "NotFoundError", "ConflictError", "AccessError", "CapacityError", "SutError", "StoreError",
    "TransportError", "RequestError",
}  # fmt: skip
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
        and not any(keyword.arg in ("hint", None) or _has_advice(keyword) for keyword in call.keywords)
    )


def _has_advice(keyword: ast.keyword) -> bool:
    """Is it a code that brings a hint?"""
    return keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and keyword.value.value in ERROR_CODES


def test_every_error_that_a_person_can_correct_says_what_to_do() -> None:
    found = [
        f"{name}:{line}"
        for path in modules().values()
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith(WITHOUT)
        for line in raised_without_hint(tree(path))
    ]
    assert found == []


def test_a_raise_without_a_hint_is_found() -> None:
    text = "raise InputError('x')\nraise InputError('x', hint='y')\nraise CapacityError('x', code='y')\n"
    text += "raise CapacityError('x', code='no_device')"
    assert raised_without_hint(ast.parse(text)) == [1, 3]
