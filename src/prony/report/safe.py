"""Text of strangers in, text that only shows itself out: names and messages come from models, engines and recipes."""

from __future__ import annotations

import re

# Control characters move cursors and colour terminals; lone surrogates and non-characters break XML and UTF-8.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    """Return the text without what cannot be seen but acts; tabs and line ends stay."""
    return _UNSHOWN.sub("", text)


def for_terminal(text: str) -> str:
    """Return text that moves no cursor and colours nothing; the line ends of other systems stay whole."""
    return "\r\n".join(visible(line) for line in text.split("\r\n"))


def unknown(value: object) -> str:
    """Return a value as text, or say that nobody told it."""
    return "unknown" if value is None else str(value)


def one_line(text: str) -> str:
    """Return the visible text with every run of white space as one space."""
    return " ".join(visible(text).split())
