"""Parse YAML by the core schema of YAML 1.2, with the position of every key.

PyYAML reads the syntax and nothing more; what a plain word means is decided here. So `on`, `no`, `10:00:00`,
`2024-01-01` and `1_000` stay the text that they are, and no tag can make anything but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from prony.recipe.limits import DEEPEST, MOST_VALUES, TOO_DEEP, TOO_MANY
from prony.recipe.positions import Keys, Mark, Parsed, problem_at
from prony.recipe.problems import DocumentProblem, syntax_error

# libyaml where PyYAML was built with it: the same events, many times faster.
LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_NO_TABS = "indent with spaces, never with tabs"
_TAG = "tag:yaml.org,2002:"
_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Return what a plain scalar means by the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text[0] in "tT"
    if _INT.fullmatch(text) and len(text) < 1000:  # Python refuses to read thousands of digits
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def parse(text: str, name: str) -> Parsed:
    """Parse one document; keys that stand twice or are no text are problems, broken YAML raises RecipeError."""
    builder = _Builder(name)
    try:
        root = builder.only_document(yaml.parse(text, Loader=LOADER))
        document = builder.unfold(root, ())
    except yaml.MarkedYAMLError as exc:
        raise _place_error(exc, text, name) from exc
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        raise syntax_error("YAML", name, "it has a character that YAML forbids", (line, 1)) from exc
    except UnicodeEncodeError as exc:
        raise syntax_error("YAML", name, "it has an incomplete character in it (a lone surrogate)") from exc
    return Parsed(document, builder.marks, tuple(builder.problems))


def _place_error(exc: yaml.MarkedYAMLError, text: str, name: str) -> Exception:
    mark = exc.problem_mark or exc.context_mark
    place = (mark.line + 1, mark.column + 1) if mark else None
    message = ", ".join(part for part in (exc.context, exc.problem) if part)
    hint = "check the brackets, the quotes and the indentation of this line and of those before it"
    if "tab character" in message:
        hint = _NO_TABS
    elif "cannot start any token" in message and mark:
        is_tab = text.split("\n")[mark.line][mark.column : mark.column + 1] == "\t"
        hint = _NO_TABS if is_tab else "put text with special characters in quotes"
    elif "mapping values are not allowed" in message:
        hint = "put text with ': ' in quotes, or check the indentation of the line"
    elif "block scalar" in message:
        hint = "put text that begins with '>' or '|' in quotes"
    return syntax_error("YAML", name, message, place, hint)


@dataclass(frozen=True, slots=True)
class _Node:
    """`value` is a scalar, a list of nodes, or a list of pairs of nodes (in a _Pairs)."""

    line: int
    column: int
    value: Any
    is_merge: bool = False


class _Pairs(list[tuple[_Node, _Node]]):
    """The pairs of a map as written, before anything is merged or refused."""


@dataclass
class _Builder:
    name: str
    marks: dict[Keys, Mark] = field(default_factory=dict)
    problems: list[DocumentProblem] = field(default_factory=list)
    anchors: dict[str, _Node] = field(default_factory=dict)
    written: int = 0  # nodes of the text
    count: int = 0  # values of the document, aliases carried out

    def only_document(self, events: Iterator[yaml.Event]) -> _Node:
        """Return the root of the one document; a stream with more of them is refused."""
        root = _Node(1, 1, None)
        seen = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                seen += 1
                if seen > 1:
                    raise self._refuse(event, "a second document begins here; a file holds one recipe")
            elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                root = self._node(event, events, 1)
        return root

    def _node(self, event: Any, events: Iterator[yaml.Event], depth: int) -> _Node:
        self.written += 1
        if depth > DEEPEST or self.written > MOST_VALUES:
            raise self._refuse(event, f"it {TOO_DEEP if depth > DEEPEST else TOO_MANY}")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise self._refuse(event, f"no anchor &{event.anchor} is defined before this")
            return self.anchors[event.anchor]
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        node = _Node(line, column, self._value(event, events, depth), _is_merge(event))
        anchor = getattr(event, "anchor", None)
        if anchor:
            self.anchors[anchor] = node
        return node

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        self._only_tag(event, "seq" if isinstance(event, yaml.SequenceStartEvent) else "map")
        nodes = []
        for inner in events:
            if isinstance(inner, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                break
            nodes.append(self._node(inner, events, depth + 1))
        if isinstance(event, yaml.SequenceStartEvent):
            return nodes
        return _Pairs(zip(nodes[::2], nodes[1::2], strict=True))

    def _scalar(self, event: Any) -> Any:
        if event.tag is None:
            return plain_scalar(event.value) if event.implicit[0] else event.value
        if event.tag in ("!", f"{_TAG}str"):
            return event.value
        value = plain_scalar(event.value)
        kind = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value))
        if event.tag == f"{_TAG}float" and kind == "int":
            return float(value or 0)
        self._only_tag(event, kind or "str")
        return value

    def _only_tag(self, event: Any, kind: str) -> None:
        if event.tag not in (None, "!", _TAG + kind):
            shown = event.tag.replace(_TAG, "!!")
            hint = "put text that begins with '!' in quotes" if shown.startswith("!=") else "remove the tag"
            raise self._refuse(event, f"the tag {shown} does not fit here", hint)

    def unfold(self, node: _Node, keys: Keys) -> Any:
        """Return the plain value of a node, aliases and merges carried out, and note where its keys stand."""
        self.marks.setdefault(keys, Mark(self.name, node.line, node.column))
        self.count += 1
        if self.count > MOST_VALUES or len(keys) > DEEPEST:
            raise self._refuse(
                node, f"its aliases expand to more than {MOST_VALUES:,} values, or are nested too deeply"
            )
        if isinstance(node.value, _Pairs):
            return {key: self.unfold(value, (*keys, key)) for key, value in self._merge(node, keys, 0).items()}
        if isinstance(node.value, list):
            return [self.unfold(item, (*keys, index)) for index, item in enumerate(node.value)]
        return node.value

    def _merge(self, node: _Node, keys: Keys, depth: int) -> dict[str, _Node]:
        """Return the pairs of a map by key: its own before merged ones, an earlier merge before a later."""
        own: dict[str, _Node] = {}
        lent: dict[str, _Node] = {}
        if depth:  # a map is copied for every merge of it
            self._count_merge(node, len(node.value), depth)
        for key, value in node.value:
            if key.is_merge:
                lent = lent | self._lent(value, keys, depth)
            elif self._is_sound_key(key, own, keys):
                own[key.value] = value
                self.marks[(*keys, key.value)] = Mark(self.name, key.line, key.column)
        return {key: value for key, value in lent.items() if key not in own} | own

    def _lent(self, node: _Node, keys: Keys, depth: int) -> dict[str, _Node]:
        """Return what `<<` brings in from one map or from a list of them."""
        lenders = node.value if isinstance(node.value, list) and not isinstance(node.value, _Pairs) else [node]
        self._count_merge(node, len(lenders), depth)
        lent: dict[str, _Node] = {}
        for lender in lenders:
            if isinstance(lender.value, _Pairs):
                lent = self._merge(lender, keys, depth + 1) | lent
            else:
                mark = Mark(self.name, lender.line, lender.column)
                self.problems.append(problem_at({keys: mark}, keys, "<< needs a map, and this is not a map"))
        return lent

    def _count_merge(self, node: _Node, count: int, depth: int) -> None:
        self.count += count
        if self.count > MOST_VALUES or depth > DEEPEST:
            raise self._refuse(node, f"its merges expand to more than {MOST_VALUES:,} values, or are nested too deeply")

    def _is_sound_key(self, key: _Node, own: dict[str, _Node], keys: Keys) -> bool:
        mark = Mark(self.name, key.line, key.column)
        if not isinstance(key.value, str):
            hint = "a key is text: put it in quotes"
            self.problems.append(problem_at({keys: mark}, keys, "has a key that is not text", hint))
            return False
        if key.value in own:
            first = self.marks[(*keys, key.value)].line
            told = problem_at({(): mark}, (*keys, key.value), f"duplicate key, first in line {first}")
            self.problems.append(told)
            return False
        return True

    def _refuse(self, at: Any, message: str, hint: str = "") -> Exception:
        mark = getattr(at, "start_mark", None)
        place = (mark.line + 1, mark.column + 1) if mark else (at.line, at.column)
        return syntax_error("a recipe", self.name, message, place, hint)


def _is_merge(event: Any) -> bool:
    is_plain = isinstance(event, yaml.ScalarEvent) and event.tag is None and event.implicit[0]
    return is_plain and event.value == "<<"
