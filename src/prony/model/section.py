"""What a kind of workload shows of a job: columns of the one table, and sections beside it."""

from __future__ import annotations

from typing import NamedTuple

from prony.model.base import Noun


class ColumnSpec(NamedTuple):
    """One column of the table of results: a key of estimates, its heading, and its importance.

    Where there is no room, the least important column goes first; the headline's has 100.
    """

    key: str
    heading: str
    importance: int


class Section(Noun):
    """A titled list of facts, as a report, the API and the web pages show them; None is a fact that is unknown."""

    title: str
    facts: tuple[tuple[str, str | None], ...] = ()
