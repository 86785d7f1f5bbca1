"""Read the rows of a set whose answers are scored: what each is called, what is asked, and what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prony.errors import InputError
from prony.plugins.tasks.rows import Row


def row_text(row: Row, column: str, number: int) -> str:
    """Return the text in a column; a row without one is refused."""
    value = row.get(column)
    if isinstance(value, str) and value.strip():
        return value
    raise _missing(row, column, number, "text")


def row_texts(row: Row, column: str, number: int) -> tuple[str, ...]:
    """Return the texts in a column that holds one text or a list of them."""
    value: Any = row.get(column)
    found = value if isinstance(value, list) else [value]
    texts = tuple(str(one) for one in found if one is not None and str(one).strip())
    if not texts:
        raise _missing(row, column, number, "reference")
    return texts


def name_rows(rows: Sequence[Row], column: str) -> list[str]:
    """Return what each row is called: what its column says, or its number; two of one name are refused."""
    names = [str(row.get(column) or number) for number, row in enumerate(rows, start=1)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        hint = f"scores are compared row by row: give each its own {column!r}"
        raise InputError(f"two rows have the id {twice!r}", hint=hint)
    return names


def _missing(row: Row, column: str, number: int, noun: str) -> InputError:
    return InputError(
        f"row {number}: no {noun} in column {column!r}",
        hint=f"its columns: {', '.join(map(str, row))}; choose one in workload.prompts",
    )
