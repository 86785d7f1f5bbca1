"""A piece of a text that is read bit by bit, such as a job's log, and which lines of it are wanted."""

from __future__ import annotations

from typing import NamedTuple


class LogPiece(NamedTuple):
    """`next_offset` is where the text goes on, in bytes of its file; `ended`: nothing will follow."""

    text: bytes
    next_offset: int
    ended: bool


class LogFilter(NamedTuple):
    """Lines of one source, and lines that hold a text, in small letters or capitals; empty: any."""

    search: str = ""
    source: str = ""

    @property
    def is_empty(self) -> bool:
        """Is every line wanted?"""
        return not self.search and not self.source

    def keeps(self, line: str) -> bool:
        """Is a line `TIME SOURCE TEXT` wanted?"""
        words = line.split(" ", 2)
        is_of_source = not self.source or (len(words) > 1 and words[1] == self.source)
        return is_of_source and self.search.casefold() in line.casefold()


EVERYTHING = LogFilter()
