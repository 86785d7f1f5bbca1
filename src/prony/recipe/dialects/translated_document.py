"""Validate another program's document strictly, and build a recipe's document from its translation.

Each wrong field gives a problem and a line; each value of the recipe's document keeps its position in the source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from prony.model.base import Noun
from prony.recipe.positions import Keys, Mark, Parsed, format_path, mark_of, problem_at, value_at, with_value
from prony.recipe.problems import DocumentProblem, recipe_error
from prony.recipe.schema_lookup import advice, describe_expected, nearest_key, show_value

T = TypeVar("T", bound=Noun)
Node = dict[str, Any]


def read_strictly(kind: type[T], parsed: Parsed, hints: Mapping[str, str], what: str) -> T:
    """Read a document of another program; `hints` say what to write for keys that are no keys, by their names, and
    `what` is what it was taken for."""
    found, problems = _read_part(kind, parsed.document, (), parsed, hints)
    if found is None:
        raise recipe_error([*parsed.problems, *problems], f"it was read as {what}")
    return found


def _read_part(
    kind: type[T], written: Any, place: Keys, parsed: Parsed, hints: Mapping[str, str] | None = None
) -> tuple[T | None, list[DocumentProblem]]:
    """Read what stands at a place of a document, or tell all that is wrong with it."""
    if not isinstance(written, Mapping):
        return None, [problem_at(parsed.marks, place, f"must be a map, not {show_value(written)}")]
    try:
        return kind.model_validate_json(json.dumps(written), strict=True), []
    except ValidationError as exc:
        part = _Part(written, place, parsed, kind.model_json_schema(), hints or {})
        found: dict[Keys, DocumentProblem] = {}
        for detail in exc.errors(include_url=False):
            keys = _keys_in(written, detail)
            found.setdefault(keys, part.problem(detail, keys))
        return None, _innermost(found)


def _innermost(found: Mapping[Keys, DocumentProblem]) -> list[DocumentProblem]:
    """Leave out what is said of a whole whose part has a problem: it is that it was not the other thing either."""
    return [
        problem
        for keys, problem in found.items()
        if not any(len(other) > len(keys) and other[: len(keys)] == keys for other in found)
    ]


def _keys_in(document: Any, detail: Mapping[str, Any]) -> Keys:
    """Return the place in the document: pydantic adds the name of each way that it tried."""
    keys: Keys = ()
    for key in detail["loc"]:
        if value_at(document, (*keys, key))[0]:
            keys = (*keys, key)
    return (*keys, detail["loc"][-1]) if detail["type"] == "missing" else keys


@dataclass(frozen=True)
class _Part:
    """What is written at a place, and the schema that it should fit."""

    written: Any
    place: Keys
    parsed: Parsed
    schema: Node
    hints: Mapping[str, str]

    def problem(self, detail: Mapping[str, Any], keys: Keys) -> DocumentProblem:
        node = _node(self.schema, keys)
        value = value_at(self.written, keys)[1]
        if detail["type"] == "missing":
            said = node.get("description")
            example = f"for example {keys[-1]} = {json.dumps(node['examples'][0])}" if node.get("examples") else ""
            return self._at(keys, f"is missing{f': {said}' if said else ''}", example)
        if detail["type"] == "extra_forbidden":
            return self._at(keys, "unknown key", _meant(keys, self.schema, self.hints))
        if detail["type"] == "value_error":
            return self._at(keys, str(detail["ctx"]["error"]))
        if "pattern" in detail["type"] or detail["type"] == "too_long":
            return self._at(keys, f"{show_value(value)} does not fit", node.get("description", ""))
        return self._at(keys, f"must be {_describe_expected(node)}, not {show_value(value)}", _advice(node, value))

    def _at(self, keys: Keys, message: str, hint: str = "") -> DocumentProblem:
        return problem_at(self.parsed.marks, (*self.place, *keys), message, hint)


def _describe_expected(node: Node) -> str:
    ways = [way for way in node.get("anyOf", [node]) if way.get("type") != "null" or "const" in way]
    return describe_expected({"anyOf": ways}) if ways else "something else"


def _advice(node: Node, value: Any) -> str:
    return advice(node, value) if value is not None else ""


def _meant(keys: Keys, whole: Node, hints: Mapping[str, str]) -> str:
    name, known = str(keys[-1]), list(_node(whole, keys[:-1]).get("properties", {}))
    if name in hints:
        return hints[name]
    near = nearest_key(name, known)
    return f"did you mean {near}?" if near else f"known here: {', '.join(known)}"


def _node(whole: Node, keys: Keys) -> Node:
    """Return the schema of a place, without references."""
    node: Node = whole
    for key in keys:
        inside = (_inside(way, key) for way in _ways(whole, node))
        node = next((inner for inner in inside if inner), {})
    ways = _ways(whole, node)
    rest = {name: value for name, value in node.items() if name not in ("anyOf", "$ref")}
    return ways[0] | rest if len(ways) == 1 else rest | {"anyOf": ways}


def _ways(whole: Node, node: Node) -> list[Node]:
    """Return every shape that a value may have there, null left out."""
    if "$ref" in node:
        return _ways(whole, whole["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return [one for way in node["anyOf"] for one in _ways(whole, way)]
    return [] if node.get("type") == "null" else [node]


def _inside(node: Node, key: str | int) -> Node:
    if isinstance(key, int):
        return dict(node.get("items", {}))
    found = node.get("properties", {}).get(key) or next(iter(node.get("patternProperties", {}).values()), None)
    return dict(found or node.get("additionalProperties") or {})


@dataclass(frozen=True)
class Translation:
    """`parsed` is a recipe's document; each note says where in the text something stands that was not honoured.

    `origins` says for paths of the recipe which path of the other program's document they were made from, and
    `users_of_client` how many users one of its clients became.
    """

    parsed: Parsed
    notes: tuple[DocumentProblem, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    users_of_client: int = 1

    def as_written(self, problem: DocumentProblem) -> DocumentProblem:
        """Return a problem of the recipe as one of the key that somebody wrote, where it is known which that was."""
        around = [path for path in self.origins if _is_within(problem.path, path)]
        if problem.line is None or not around:  # an option has no line, and speaks the recipe's own words
            return problem
        hint = "; ".join(part for part in (problem.hint, f"it becomes {problem.path}") if part)
        return replace(problem, path=self.origins[max(around, key=len)], hint=hint)


def _is_within(path: str, around: str) -> bool:
    return path == around or path.startswith((f"{around}.", f"{around}["))


@dataclass
class Draft:
    """A recipe that is being made from a document of another program."""

    origin: Parsed
    document: dict[str, Any] = field(default_factory=dict)
    marks: dict[Keys, Mark] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[DocumentProblem] = field(default_factory=list)
    problems: list[DocumentProblem] = field(default_factory=list)
    users_of_client: int = 1

    def set(self, path: str, value: Any, origin: Keys = ()) -> None:
        """Set the value of a dotted path; `origin` is where it stood in the document that it is made from."""
        keys = tuple(path.split("."))
        self.document = with_value(self.document, keys, value)
        self.at(keys, origin)

    def at(self, keys: Keys, origin: Keys) -> None:
        """Say where a part of what was set comes from."""
        self.marks[keys] = mark_of(self.origin.marks, origin)
        if origin:
            self.origins[format_path(keys)] = format_path(origin)

    def note(self, origin: Keys, message: str, hint: str = "") -> None:
        """Say what of the document is not honoured, or otherwise than it was meant there."""
        self.notes.append(problem_at(self.origin.marks, origin, message, hint))

    def refuse(self, origin: Keys, message: str, hint: str = "") -> None:
        self.problems.append(problem_at(self.origin.marks, origin, message, hint))

    def read(self, kind: type[T], written: Any, place: Keys) -> T | None:
        """Read a part of the document strictly; None where it is wrong, and then its problems are told here."""
        found, problems = _read_part(kind, written, place, self.origin)
        self.problems += problems
        return found

    def translation(self) -> Translation:
        marks = {(): mark_of(self.origin.marks, ()), **self.marks}
        parsed = Parsed(self.document, marks, (*self.origin.problems, *self.problems))
        return Translation(parsed, tuple(self.notes), self.origins, self.users_of_client)
