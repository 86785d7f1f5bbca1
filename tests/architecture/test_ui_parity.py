"""What the CLI asks of a server, a person can ask in the web pages too; only what no browser can do is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from .conftest import Document
from .house import modules
from .pages import SOURCES, asked, holes, reached, unused
from .test_parity import CALLS, NO_COMMAND, asked_in

Api = dict[str, tuple[str, str, Any]]

# What a command asks and no page can, and why a browser cannot do it.
NOT_IN_A_BROWSER = {
    "keep_scripts": "it brings a folder from the disk of whoever types; a page cannot read one",
    "login_link": "it logs a browser in, and one that shows the pages has done so",
}
# What a page learns without asking for it: the answer to another operation, which pages do ask, holds all of this one.
HELD_BY = {"baseline": "history", "change": "history", "compatibility": "check"}


@cache
def asked_by_commands() -> set[str]:
    """Return every operation that the CLI takes from its client."""
    return asked_in(path for name, path in modules().items() if name.startswith("prony.cli."))


def unasked(api: Api) -> set[str]:
    """Return the operations that no page asks."""
    calls = asked()
    return {name for name, (method, path, _) in api.items() if (method, holes(path)) not in calls}


def test_what_is_said_of_the_commands_is_what_their_sources_ask() -> None:
    assert asked_by_commands() == set(CALLS)


def test_the_pages_ask_every_operation_that_the_cli_asks(api: Api) -> None:
    assert asked_by_commands() & unasked(api) - set(HELD_BY) == set(NOT_IN_A_BROWSER)


@pytest.mark.parametrize(("held", "holder"), HELD_BY.items())
def test_an_operation_that_need_not_be_asked_is_held_by_one_that_is(
    held: str, holder: str, api: Api, openapi: Document
) -> None:
    assert held in unasked(api)
    assert holder not in unasked(api)
    (noun,) = nouns_in(api[held][2]["responses"]["200"])
    holding = parts_of(set(nouns_in(api[holder][2]["responses"]["200"])), openapi)
    # A bare list of nouns needs no name of its own.
    assert noun in holding or set(nouns_in(openapi["components"]["schemas"][noun])) <= holding


def nouns_in(schema: Any) -> Iterator[str]:
    """Yield the names of the schemas that one refers to."""
    yield from set(re.findall(r"'#/components/schemas/(\w+)'", str(schema)))


def parts_of(nouns: set[str], openapi: Document) -> set[str]:
    found: set[str] = set()
    while nouns:
        noun = nouns.pop()
        found.add(noun)
        nouns |= set(nouns_in(openapi["components"]["schemas"][noun])) - found
    return found


def test_what_no_command_and_no_page_asks_has_a_reason(api: Api) -> None:
    assert unasked(api) <= set(NO_COMMAND) | set(HELD_BY) | set(NOT_IN_A_BROWSER)


def test_the_pages_ask_nothing_that_is_not_there(api: Api) -> None:
    known = {(method, holes(path)) for method, path, _ in api.values()}
    assert asked() - known == set()


def test_what_the_pages_ask_is_asked_somewhere_that_a_person_comes_to() -> None:
    written = {
        path.resolve()
        for path in SOURCES.rglob("*.ts*")
        if ".test." not in path.name and not path.name.endswith(".d.ts")
    }
    assert written - set(reached()) == set()
    assert unused() == set()
