"""Write escaped Markdown text, lines and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.report.escaping import one_line
from prony.report.load_tables import FigureLine

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!@])")


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, in one line; no name can become a link, a tag or another row."""
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("://", ":\\//")


def grid(headings: Sequence[str], rows: Sequence[FigureLine], *, numeric: bool = True) -> list[str]:
    """Return a table with its empty line, or nothing of no rows; `numeric`: all but the first column hold numbers."""
    if not rows:
        return []
    ruler = ["---", *(["---:" if numeric else "---"] * (len(headings) - 1))]
    body = [line([escape_markdown(row.name), *map(escape_markdown, row.cells)]) for row in rows]
    return [line([escape_markdown(heading) for heading in headings]), line(ruler), *body, ""]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
