"""Rows of a SARK campaign in, its CSV out: the columns in their order, lines ended as the csv module ends them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from prony.model.sark import CSV_COLUMNS
from prony.model.shown import visible

# A spreadsheet takes a cell that begins so for a formula, and these come from whoever registered.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sark_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return the table; what a row does not know is empty."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in CSV_COLUMNS])
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, str):
        text = visible(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value
