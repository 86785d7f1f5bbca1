"""Texts of the code as cells of Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Options, variables and addresses of a help text are code on the page.
_CODE = re.compile(r"(?<![\w-])--[a-z][\w-]*|\b[A-Z]+_[A-Z_]+\b|\b[a-z\d+]+://[^\s,;)]*")


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with its last line break."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


def format_text(text: str) -> str:
    """Return a text for a cell: what is code between backticks, the rest without Markdown's signs."""
    parts = " ".join(text.split()).split("`")
    return "".join(f"`{part}`" if place % 2 else _escape(part) for place, part in enumerate(parts))


def replace_table(page: str, head: Sequence[str], table: str) -> str:
    """Return a page with its one table of this head replaced."""
    first = re.escape(f"| {' | '.join(head)} |")
    written, count = re.subn(rf"^{first}\n(?:\|[^\n]*\n)*", lambda _: table, page, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{count} tables with the columns {', '.join(head)}")
    return written


def _escape(text: str) -> str:
    plain = re.sub(r"([|*<\[\]\\])", r"\\\1", text)
    return _CODE.sub(lambda found: f"`{found[0]}`", plain)
