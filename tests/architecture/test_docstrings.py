"""Public interfaces say in their docstrings what they raise; ruff checks that the docstrings are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony import errors

from .house import PACKAGE, tree

INTERFACES = sorted(
    path
    for pattern in ("api/*.py", "ports/*.py", "client/*.py", "app/bench.py", "app/local_*.py")
    for path in PACKAGE.glob(pattern)
)
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.PronyError)}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """Yield the public functions of a module, and the public methods of its public classes."""
    for node in tree(path).body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        yield from (one for one in inside if isinstance(one, Function) and not one.name.startswith("_"))


def raised_in(function: Function) -> set[str]:
    """Return Prony's errors that a function raises itself, not those of the functions within it."""
    found, waiting = set[str](), list[ast.AST](function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            found.add(node.exc.func.id)
        if not isinstance(node, Function | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found & ERRORS


def named_in(function: Function) -> set[str]:
    """Return the errors that the section Raises names."""
    _, _, section = (ast.get_docstring(function) or "").partition("Raises:\n")
    lines = section.partition("\n\n")[0].splitlines()
    return {line.split(":")[0].strip() for line in lines if ":" in line}


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_docstring_names_every_error_that_the_function_raises_itself(path: Path) -> None:
    silent = {one.name: sorted(raised_in(one) - named_in(one)) for one in functions(path)}
    assert {name: found for name, found in silent.items() if found} == {}


def test_an_error_that_is_raised_and_not_named_is_found() -> None:
    text = """
def good() -> None:
    '''Do it.

    Raises:
        InputError: It cannot be done.
    '''
    raise InputError("no")


def bad() -> None:
    '''Do it.'''
    raise StoreError("no") from None
"""
    good, bad = (node for node in ast.parse(text).body if isinstance(node, Function))
    assert raised_in(good) - named_in(good) == set()
    assert raised_in(bad) - named_in(bad) == {"StoreError"}
