"""Turn SQL with placeholders into prepared statements, and draw the values of each request.

A place is one of the templates' (`{random_int:1:100}`, `{random_hex:16}`, `{seq}`, ...) or the name of a value that the
recipe gives one of these rules; a named value is the same in all statements of one request. Other braces are left as
they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prony.errors import InputError
from prony.plugins.drivers.http.template import Template

_PLACE = re.compile(r"\{([A-Za-z_]\w*(?::[^{}]*)?)\}")


@dataclass(frozen=True)
class Statement:
    """`sql` has $1, $2, ... where `places` (keys of the rules) stand."""

    sql: str
    places: tuple[str, ...]


class Script:
    """Statements that make one request, and the rules of all their values."""

    def __init__(self, statements: Sequence[str], values: Mapping[str, str], rng: np.random.Generator) -> None:
        self._rng = rng
        self._rules = {name: _rule(name, text) for name, text in values.items()}
        self._named = frozenset(values)
        self.statements = tuple(self._read(sql) for sql in statements)

    def drawn(self, number: int) -> list[list[str]]:
        """Return the values of each statement of one request."""
        found = {name: rule.fill(number, self._rng) for name, rule in self._rules.items()}
        return [[found[place] for place in statement.places] for statement in self.statements]

    def _read(self, sql: str) -> Statement:
        places: list[str] = []

        def number_place(match: re.Match[str]) -> str:
            word = match.group(1)
            if word not in self._named:
                rule = Template(match.group())
                if not rule.varies:
                    return match.group()
                # Without a name of its own a place is drawn for itself.
                word = f"{word}#{len(self._rules)}"
                self._rules[word] = rule
            if word not in places:
                places.append(word)
            return f"${places.index(word) + 1}"

        return Statement(_PLACE.sub(number_place, sql), tuple(places))


def _rule(name: str, text: str) -> Template:
    found = Template(f"{{{text}}}")
    if not found.varies:
        raise InputError(
            f"{text!r} is no rule for the value {name}", hint="write random_int:1:100, random_hex:16 or seq"
        )
    return found
