"""The tables of the reference are those that the code makes, and what people wrote around them stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tools.reference.__main__ import PAGES
from tools.reference.api import write_operation_table
from tools.reference.errors import write_error_rows
from tools.reference.markdown import format_table, replace_table
from tools.reference.recipe import list_nouns, write_key_tables

from .house import page


@pytest.mark.parametrize(("name", "write"), PAGES.items(), ids=list(PAGES))
def test_a_page_has_the_tables_of_the_code(name: str, write: Callable[[str], str]) -> None:
    text = page(name.removesuffix(".md"))
    assert text == write(text), "run make reference"


def test_only_the_table_is_replaced() -> None:
    before = "# Before\n\n| name | meaning |\n|---|---|\n| old | x |\n\n| other |\n|---|\n| kept |\n"
    after = replace_table(before, ("name", "meaning"), format_table(("name", "meaning"), [("new", "y")]))
    assert after == before.replace("| old | x |", "| new | y |")


def test_a_page_without_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 tables"):
        replace_table("# No table\n", ("name",), "")


def test_an_operation_with_another_role_is_replaced() -> None:
    changed = page("api").replace("`POST /experiments` | submitter |", "`POST /experiments` | viewer |")
    assert changed != page("api")
    assert write_operation_table(changed) == page("api")


def test_a_line_with_a_code_that_no_error_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="no error has the code warp_core"):
        write_error_rows("| `warp_core` | x |\n")


def test_the_page_of_the_api_has_every_status_that_an_error_can_have() -> None:
    errors = {int(status) for status in re.findall(r"\b[45]\d\d\b", " ".join(_cells("errors", 2)))}
    shown = {int(status) for status in re.findall(r"\b[45]\d\d\b", " ".join(_cells("api", 0)))}
    assert shown == errors


def _cells(name: str, column: int) -> list[str]:
    lines = [line.split(" | ") for line in page(name).splitlines() if line.startswith("| ")]
    return [cells[column] for cells in lines if len(cells) > column]


def test_the_page_of_the_recipe_has_a_table_for_every_part_of_it() -> None:
    named = re.findall(r"^<!-- keys: (\w+) -->$", page("recipe"), re.MULTILINE)
    assert sorted(named) == sorted(list_nouns())


def test_every_key_of_a_recipe_has_a_meaning() -> None:
    lacking = [
        f"{name}.{key}"
        for name, node in list_nouns().items()
        for key, one in node["properties"].items()
        if not one.get("description", "").partition("; default: ")[0]
    ]
    assert lacking == []


def test_a_table_of_keys_that_no_recipe_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="no part of a recipe is called Sauce"):
        write_key_tables("<!-- keys: Sauce -->\n")
