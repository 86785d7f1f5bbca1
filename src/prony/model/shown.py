"""Text of strangers made harmless to look at; standard library only, because every command prints."""

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
