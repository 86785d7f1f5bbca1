"""What a kind of workload shows of a job: columns of the one table, and sections beside it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from prony.model.base import Noun

# A fact is a name and a value; None is a value that is unknown.
Fact = tuple[str, str | None]
# Charts of one job's samples, by the operation that has their numbers.
FigureType = Literal["distribution", "timeline", "starts", "lines"]


class ColumnSpec(NamedTuple):
    """One column of the table of results: a key of estimates, its heading, and its importance.

    Where there is no room, the least important column goes first; the headline's has 100.
    """

    key: str
    heading: str
    importance: int


class SectionTable(Noun):
    """A table of texts under a title of its own; `numeric` are the places of the columns that hold numbers."""

    title: str = ""
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()

    def without_empty_columns(self) -> SectionTable:
        """Return the table without columns in which no row says anything."""
        kept = [place for place in range(len(self.headings)) if any(row[place] for row in self.rows)]
        return SectionTable(
            title=self.title, headings=tuple(self.headings[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
            numeric=tuple(new for new, old in enumerate(kept) if old in self.numeric),
        )  # fmt: skip


class SectionFigure(Noun):
    """A chart, drawn from the numbers of the operation that its type names."""

    type: FigureType
    title: str


class Section(Noun):
    """A titled part of what a report, the API and the web pages show of one job.

    `note` is a sentence that stands first; `is_open`: a document shows it at once and not on a click.
    """

    title: str
    note: str = ""
    facts: tuple[Fact, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    figures: tuple[SectionFigure, ...] = ()
    is_open: bool = False


class JobSections(Noun):
    """All sections of one job, those with figures of its samples first."""

    job_id: str
    title: str
    kind: str
    sections: tuple[Section, ...]
