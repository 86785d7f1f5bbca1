"""Something that Prony chose because nobody said it."""

from __future__ import annotations

from prony.model.base import Noun


class Assumption(Noun):
    """What was chosen and why; `flag` changes it on a command line, `key` in a recipe."""

    what: str
    flag: str
    key: str
    is_guess: bool = False
