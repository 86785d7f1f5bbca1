"""The habits that can be counted: sizes, broad excepts, promises in comments, words that belong elsewhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tools.house import House

from .house import PACKAGE, ROOT, drawn_layers, files, modules, package_statements, tree

LARGEST_CLASS = 300
LONGEST_FUNCTION = 60
# Properties that say how a thing is; a function that does something is a verb.
PARTICIPLES = {"_ranked", "passed", "shown"}
# About what was reached, so that it does not get worse: raise the first and lower the second where you can.
LEAST_LINES_A_NAME = 34.5
MOST_WITH_ONE_IMPORTER = 240
# Written in two halves, so that this file does not find itself.
PROMISES = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")))
ELSEWHERE = re.compile(
    "|".join(
        ("/" + "work/", "/" + "root/", "/" + "home/[a-z]", "pypi" + r"\.org", "python" + "hosted", "--index" + "-url")
    )
)


def texts() -> list[Path]:
    return [path for path in files() if b"\0" not in path.read_bytes()]


@cache
def house() -> House:
    return House()


def test_no_class_is_a_tower() -> None:
    """Counted with its bases inside the package: a class that is cut into mixins is as long as all of them."""
    assert list(house().towers(LARGEST_CLASS)) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert house().circles() == []


def test_no_method_waits_for_a_subclass_to_write_it() -> None:
    assert list(house().hooks()) == []


def test_no_module_opens_with_a_formula() -> None:
    assert house().formulas() == []


def test_sql_stands_in_the_store_alone_and_so_do_its_types() -> None:
    assert house().sql() == []


def test_a_function_is_a_verb_and_no_participle() -> None:
    assert {row.split()[-1] for row in house().participles()} == PARTICIPLES


def test_names_and_modules_are_no_more_than_they_were_for_as_many_lines() -> None:
    assert round(sum(house().sizes()) / len(house().public_names()), 1) >= LEAST_LINES_A_NAME
    assert len(house().one_importer()) <= MOST_WITH_ONE_IMPORTER


def test_no_function_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, node in package_statements()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_a_broad_except_gives_its_reason() -> None:
    silent = []
    for path, node in package_statements():
        if isinstance(node, ast.ExceptHandler) and _is_broad(node):
            line = path.read_text().splitlines()[node.lineno - 1]
            if not re.search(r"# noqa: BLE001 - \w+", line) and not _raises_again(node):
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert silent == []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in ("Exception", "BaseException") for kind in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Cleaning up and letting the error go on swallows nothing."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_every_module_says_what_it_is_for() -> None:
    content = {name: found for name, path in modules().items() if (found := tree(path)).body}
    assert [name for name, found in content.items() if not ast.get_docstring(found)] == []


@pytest.mark.parametrize(("what", "pattern"), [("a promise", PROMISES), ("one machine or index", ELSEWHERE)])
def test_nothing_in_the_repository_speaks_of(what: str, pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in texts()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def test_the_packages_are_those_that_the_architecture_page_names() -> None:
    named = {name for layer in drawn_layers() for name in layer.split(" | ")}
    unnamed = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
    assert named == {entry.name.removesuffix(".py") for entry in PACKAGE.iterdir() if entry.name not in unnamed}
