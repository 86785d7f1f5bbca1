"""Recognise a document that another program's dialect can translate into a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prony.ports import plugins
from prony.ports.dialect import Dialect


def known_dialects() -> dict[str, Dialect]:
    """Load every dialect, by its name."""
    return plugins.create_all(plugins.DIALECTS)


def recognise(document: Mapping[str, Any]) -> tuple[str, Dialect] | None:
    """Return the dialect that a document is written in, with its name; None: it is Prony's own."""
    if "workload" in document:
        return None
    return next(((name, dialect) for name, dialect in known_dialects().items() if dialect.fits(document)), None)
