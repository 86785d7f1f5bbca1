"""TOML, with the places that tomllib does not tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from lanes import count_examples
from prony.errors import RecipeError
from prony.recipe import loads, toml_text
from prony.recipe.positions import Keys, Marks, format_path

from .strategies import documents, toml

TEXT = '''\
# a comment with [brackets] = "and more"
name = "a # no comment"  # one
"quoted.key" = 'x = 1'
a.b . c = 1
text = """
[not.a.table]
k = 1
"""
inline = { x = 1, "y.z" = { w = [1, 2] }, v.u = 2 }

[ table . inner ]
list = [
  1, # [2]
  { deep = "}" },
  ["]"],
]
[[rows]]
n = 1
[[rows]]
n = 2
[rows.sub]
m = 3
[[rows.cells]]
k = 1
'''


def places(marks: Marks) -> dict[str, tuple[int | None, int | None]]:
    return {format_path(keys): (mark.line, mark.column) for keys, mark in marks.items()}


def test_every_kind_of_key_knows_its_place() -> None:
    found = places(toml_text.parse(TEXT, "r.toml").marks)
    assert found == {
        "": (1, 1), "name": (2, 1), "quoted.key": (3, 1), "a": (4, 1), "a.b": (4, 3), "a.b.c": (4, 7), "text": (5, 1),
        "inline": (9, 1), "inline.x": (9, 12), "inline.y.z": (9, 19), "inline.y.z.w": (9, 29),
        "inline.y.z.w[0]": (9, 34), "inline.y.z.w[1]": (9, 37), "inline.v": (9, 43), "inline.v.u": (9, 45),
        "table": (11, 3), "table.inner": (11, 1), "table.inner.list": (12, 1), "table.inner.list[0]": (13, 3),
        "table.inner.list[1]": (14, 3), "table.inner.list[1].deep": (14, 5), "table.inner.list[2]": (15, 3),
        "table.inner.list[2][0]": (15, 4), "rows": (17, 3), "rows[0]": (17, 1), "rows[0].n": (18, 1),
        "rows[1]": (19, 1), "rows[1].n": (20, 1), "rows[1].sub": (21, 1), "rows[1].sub.m": (22, 1),
        "rows[1].cells": (23, 8), "rows[1].cells[0]": (23, 1), "rows[1].cells[0].k": (24, 1),
    }  # fmt: skip


def every_path(tree: Any, keys: Keys = ()) -> set[Keys]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return {keys}.union(*(every_path(value, (*keys, key)) for key, value in inner))


@settings(max_examples=count_examples(150), deadline=None, derandomize=True)
@given(documents)
def test_whatever_tomllib_reads_the_locator_finds_and_nothing_else(document: dict[str, Any]) -> None:
    parsed = toml_text.parse(toml(document), "r.toml")
    assert set(parsed.marks) == every_path(parsed.document) == every_path(document)


def test_a_table_that_stands_twice_is_refused_with_its_line() -> None:
    with pytest.raises(RecipeError, match=r"r\.toml:3: this is not TOML: cannot declare"):
        toml_text.parse("[a]\nx = 1\n[a]\n", "r.toml")


def test_text_without_quotes_gets_advice() -> None:
    with pytest.raises(RecipeError) as caught:
        toml_text.parse("name = a\n", "r.toml")
    assert caught.value.hint == "put text in quotes"


def test_the_dotted_keys_of_toml_are_axes_and_their_problems_have_lines() -> None:
    text = (
        'name = "a"\n[workload]\nkind = "model"\nmodel = "m"\n[matrix]\nworkload.engine = ["x", "y"]\n'
        'workload.threads = [1,\n  0]\n[[matrix.exclude]]\nworkload.engine = "z"\n'
    )
    with pytest.raises(RecipeError) as caught:
        loads(text, "toml", "r.toml")
    assert [(problem["line"], problem["path"]) for problem in caught.value.problems] == [
        (8, "matrix.workload.threads[1]"),
        (10, "matrix.exclude[0].workload.engine"),
    ]


def test_an_axis_written_dotted_and_nested_is_a_problem() -> None:
    text = (
        'name = "a"\nworkload = {kind = "model", model = "m", engine = "e"}\n'
        '[matrix]\nworkload.threads = [1]\n"workload.threads" = [2]\n'
    )
    with pytest.raises(RecipeError, match="is given twice, dotted and nested"):
        loads(text, "toml")


def test_a_date_is_no_value_of_a_recipe() -> None:
    text = 'name = "a"\nworkload = {kind = "model", model = "m", engine = "e"}\n[labels]\nday = 2024-01-01\n'
    with pytest.raises(RecipeError) as caught:
        loads(text, "toml", "r.toml")
    assert caught.value.message == "r.toml:4: labels.day: is a date or a time, which no key of a recipe takes"
