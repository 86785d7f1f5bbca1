"""What the CLI asks of a server, a person can ask in the web pages too, or it is said why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .house import PACKAGE
from .test_parity import CALLS, NO_COMMAND, api

__all__ = ["api"]

SOURCES = PACKAGE.parents[1] / "ui" / "src"
# `api.POST("/api/v1/jobs/{job_id}/cancel", ...)`, and addresses that are put together for a stream or a download.
_CALL = re.compile(r"""\.(GET|POST|PUT|PATCH|DELETE)\(\s*["`](/api/v1/[^"`]*)["`]""")
_ADDRESS = re.compile(r"""["`](/api/v1/[^"`?]*)""")
_HOLE = re.compile(r"\$?\{(?:[^{}]|\{[^{}]*\})*\}")

AN_AGENT_S = "only an agent asks this"
IN_ANOTHER = "another operation that a page asks tells the same"
# Operations that no page asks for, and why.
NO_PAGE: dict[str, str] = {
    "enroll": AN_AGENT_S,
    "heartbeat": AN_AGENT_S,
    "capabilities": AN_AGENT_S,
    "lease": AN_AGENT_S,
    "progress": AN_AGENT_S,
    "hand_back": AN_AGENT_S,
    "upload_offset": AN_AGENT_S,
    "upload": AN_AGENT_S,
    "finish": AN_AGENT_S,
    "meet": AN_AGENT_S,
    "clock": AN_AGENT_S,
    "baseline": f"{IN_ANOTHER}: history",
    "change": f"{IN_ANOTHER}: changes and history",
    "compatibility": f"{IN_ANOTHER}: check, before a recipe is submitted",
    "jobs": f"{IN_ANOTHER}: results and watch, for each job of an experiment",
    "keep_scripts": "it brings a folder from the disk of whoever types; a page cannot read one",
}


def asked() -> set[tuple[str, str]]:
    """Return the method and the address, with holes for what differs, of all that the pages ask."""
    found: set[tuple[str, str]] = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        calls = set(_CALL.findall(text))
        named = {address for _, address in calls}
        found |= {(method, holes(address)) for method, address in calls}
        found |= {("GET", holes(address)) for address in _ADDRESS.findall(text) if address not in named}
    return found


def sources() -> list[Path]:
    """Return what is built: no tests, and not what was made from the API's own document."""
    return [
        path for path in sorted(SOURCES.rglob("*.ts*")) if ".test." not in path.name and not path.name.endswith(".d.ts")
    ]


def holes(address: str) -> str:
    return _HOLE.sub("{}", address)


def test_the_pages_ask_every_operation_that_the_cli_asks(api: dict[str, tuple[str, str, Any]]) -> None:
    calls = asked()
    unasked = {name for name, (method, path, _) in api.items() if (method, holes(path)) not in calls}
    assert unasked & set(CALLS) - set(NO_PAGE) == set()


@pytest.mark.parametrize("operation", sorted(NO_PAGE))
def test_an_operation_is_asked_by_no_page_if_that_is_what_is_said(
    operation: str, api: dict[str, tuple[str, str, Any]]
) -> None:
    method, path, _ = api[operation]
    assert (method, holes(path)) not in asked()


def test_what_no_command_and_no_page_asks_has_a_reason(api: dict[str, tuple[str, str, Any]]) -> None:
    calls = asked()
    unasked = {name for name, (method, path, _) in api.items() if (method, holes(path)) not in calls}
    assert unasked <= set(NO_PAGE) | set(NO_COMMAND)


def test_the_pages_ask_nothing_that_is_not_there(api: dict[str, tuple[str, str, Any]]) -> None:
    known = {(method, holes(path)) for method, path, _ in api.values()}
    assert asked() - known == set()
