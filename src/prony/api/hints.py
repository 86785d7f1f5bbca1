"""Show the hints of Prony's errors in tracebacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prony.errors import PronyError


@contextmanager
def add_hints() -> Iterator[None]:
    """Have a traceback show the hint of an error below its message."""
    try:
        yield
    except PronyError as exc:
        if exc.hint:
            exc.add_note(f"hint: {exc.hint}")
        raise
