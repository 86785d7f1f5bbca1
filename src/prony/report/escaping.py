"""Make untrusted text safe to show: names and messages come from models, engines and recipes."""

from __future__ import annotations

from prony.model.shown import visible


def unknown(value: object) -> str:
    """Return a value as text, or say that nobody told it."""
    return "unknown" if value is None else str(value)


def one_line(text: str) -> str:
    """Return the visible text with every run of white space as one space."""
    return " ".join(visible(text).split())
