"""Text of strangers made harmless to look at; standard library only, because every command prints."""

from __future__ import annotations

import re

# Control characters move cursors and colour terminals; lone surrogates and non-characters break XML and UTF-8.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

# A whole command to a terminal: up to its last letter, or up to the end of the string that it brings.
_COMMAND = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]"
)


def visible(text: str) -> str:
    """Return the text without what cannot be seen but acts; tabs and line ends stay."""
    return _UNSHOWN.sub("", text)


def for_terminal(text: str) -> str:
    """Return text that moves no cursor and colours nothing; the line ends of other systems stay whole."""
    return "\r\n".join(visible(line) for line in text.split("\r\n"))


def plain_log(text: str) -> str:
    """Return what a program printed as words alone: colours and other commands to a terminal go as a whole."""
    return for_terminal(_COMMAND.sub("", text))
