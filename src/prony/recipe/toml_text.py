"""Parse TOML with tomllib, and find the position of every key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from prony.recipe.positions import Keys, Mark, Parsed
from prony.recipe.problems import syntax_error

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' + r"|'''.*?'{3,5}(?!')" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'"
    r"|(?P<skip>[ \t\r]+|#[^\n]*)" + r"|[\[\]{},=.\n]" + r"|[^\s\[\]{},=.\"'#]+",
    re.DOTALL,
)
_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


def parse(text: str, name: str) -> Parsed:
    """Parse the text; what tomllib refuses (a key that stands twice, too) is raised as RecipeError."""
    text = text.replace("\r\n", "\n")
    try:
        document = tomllib.loads(text)
        marks = _Locator(name, _tokens(text)).marks_of_statements()
    except tomllib.TOMLDecodeError as exc:
        raise _place_error(exc, text, name) from exc
    except RecursionError as exc:
        raise syntax_error("TOML", name, "it is nested too deeply") from exc
    except ValueError as exc:  # a whole number with more digits than Python will read, or an impossible date
        raise syntax_error("TOML", name, "a number or a date in it is out of range") from exc
    return Parsed(document, marks)


def _place_error(exc: tomllib.TOMLDecodeError, text: str, name: str) -> Exception:
    message = str(exc)
    found = _PLACE.search(message)
    at_end = (text.rstrip("\n").count("\n") + 1, 1)
    place = (int(found[1]), int(found[2])) if found and found[1] else at_end
    said = _PLACE.sub("", message).strip()
    hint = "put text in quotes" if said == "Invalid value" else ""
    return syntax_error("TOML", name, said[:1].lower() + said[1:], place, hint)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int
    column: int


def _tokens(text: str) -> list[_Token]:
    found, line, line_start, seen = list[_Token](), 1, 0, 0
    for match in _TOKEN.finditer(text):
        breaks = text.count("\n", seen, match.start())
        if breaks:
            line, line_start = line + breaks, text.rfind("\n", 0, match.start()) + 1
        seen = match.start()
        if match["skip"] is None:
            found.append(_Token(match[0], line, match.start() - line_start + 1))
    return found


@dataclass
class _Locator:
    """Walks the tokens of a text that is known to be TOML, so it only has to follow, never to check."""

    name: str
    tokens: list[_Token]
    at: int = 0
    marks: dict[Keys, Mark] = field(default_factory=dict)
    lengths: dict[Keys, int] = field(default_factory=dict)  # arrays of tables: how many came so far

    def marks_of_statements(self) -> dict[Keys, Mark]:
        self.marks[()] = Mark(self.name, 1, 1)
        table: Keys = ()
        while self.at < len(self.tokens):
            if self._now() == "\n":
                self.at += 1
            elif self._now() == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.marks

    def _now(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _header(self) -> Keys:
        """Read `[a.b]` or `[[a.b]]` and return the path of the table that it opens."""
        start = self.at
        self.at += 1
        is_array = self._now() == "["
        self.at += is_array
        keys = self._keys(())
        self.at += 2 if is_array else 1
        if is_array:
            index = self.lengths.get(keys, 0)
            self.lengths[keys] = index + 1
            keys = (*keys, index)
        # An earlier dotted header may have marked it in passing; its own header is the better place.
        self.marks[keys] = Mark(self.name, self.tokens[start].line, self.tokens[start].column)
        return keys

    def _keys(self, prefix: Keys) -> Keys:
        """Read a dotted key and return its whole path, through the newest element of every array of tables."""
        keys = prefix
        while True:
            token = self.tokens[self.at]
            if keys in self.lengths:
                keys = (*keys, self.lengths[keys] - 1)
            keys = (*keys, _bare(token.text))
            self.marks.setdefault(keys, Mark(self.name, token.line, token.column))
            self.at += 1
            if self._now() != ".":
                return keys
            self.at += 1

    def _pair(self, table: Keys) -> None:
        keys = self._keys(table)
        self.at += 1  # the equals sign
        self._value(keys)

    def _value(self, keys: Keys) -> None:
        if self._now() == "{":
            self._inline(keys)
        elif self._now() == "[":
            self._array(keys)
        else:
            while self._now() not in ("", "\n", ",", "]", "}"):
                self.at += 1

    def _inline(self, keys: Keys) -> None:
        self.at += 1
        while self._now() != "}":
            if self._now() in (",", "\n"):
                self.at += 1
            else:
                self._pair(keys)
        self.at += 1

    def _array(self, keys: Keys) -> None:
        self.at += 1
        index = 0
        while self._now() != "]":
            if self._now() in (",", "\n"):
                index += self._now() == ","
                self.at += 1
                continue
            token = self.tokens[self.at]
            self.marks.setdefault((*keys, index), Mark(self.name, token.line, token.column))
            self._value((*keys, index))
        self.at += 1


def _bare(key: str) -> str:
    """Return the key that a token writes: bare, or in quotes of either kind."""
    if key.startswith("'"):
        return key[1:-1]
    if key.startswith('"'):
        return next(iter(tomllib.loads(f"{key} = 0")))
    return key
