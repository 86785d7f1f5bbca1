"""Flatten the nested axes and facts of a document into dotted paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from prony.recipe.limits import MOST_AXES
from prony.recipe.positions import Keys, Mark, Marks, Parsed, problem_at, value_at, with_value
from prony.recipe.problems import DocumentProblem
from prony.recipe.schema_lookup import follow


def flatten_nests(parsed: Parsed) -> Parsed:
    """Return the document with nests made dotted: `workload.threads = [1, 2]` in TOML is a nest of tables."""
    return _flat_where(_flat_matrix(parsed))


def _flat_where(parsed: Parsed) -> Parsed:
    is_there, where = value_at(parsed.document, ("place", "where"))
    if not is_there or not isinstance(where, dict):
        return parsed
    move = _Move("fact", parsed.marks, dict(parsed.marks))
    document = with_value(parsed.document, ("place", "where"), move.flat(where, ("place", "where")))
    return replace(parsed, document=document, marks=move.marks).having(*move.problems)


def _flat_matrix(parsed: Parsed) -> Parsed:
    matrix = parsed.document.get("matrix")
    if not isinstance(matrix, dict):
        return parsed
    move = _Move("axis", parsed.marks, dict(parsed.marks))
    flat = move.flat({key: value for key, value in matrix.items() if key != "exclude"}, ("matrix",))
    if "exclude" in matrix:
        flat["exclude"] = _flat_entries(matrix["exclude"], move)
    document = parsed.document | {"matrix": flat}
    return replace(parsed, document=document, marks=move.marks).having(*move.problems)


def _flat_entries(entries: Any, move: _Move) -> Any:
    if not isinstance(entries, list):
        return entries
    return [
        move.flat(entry, ("matrix", "exclude", index)) if isinstance(entry, dict) else entry
        for index, entry in enumerate(entries)
    ]


@dataclass
class _Move:
    """Takes the marks of a nest along to the dotted path that replaces it; `noun` is what a leaf is called."""

    noun: str
    old: Marks
    marks: dict[Keys, Mark]
    problems: list[DocumentProblem] = field(default_factory=list)

    def flat(self, tree: Mapping[str, Any], place: Keys) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for inner, value in _leaves(tree):
            path = ".".join(inner)
            if path in flat:
                self.problems.append(
                    problem_at(self.old, (*place, *inner), f"this {self.noun} is given twice, dotted and nested")
                )
            flat[path] = value
            self._follow((*place, *inner), (*place, path), value)
        return flat

    def _follow(self, old: Keys, new: Keys, value: Any) -> None:
        items = range(len(value)) if isinstance(value, list) else ()
        for tail in ((), *((item,) for item in items)):
            if (*old, *tail) in self.old:
                self.marks[(*new, *tail)] = self.old[(*old, *tail)]


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from (((key, *inner), leaf) for inner, leaf in _leaves(value))
        else:
            yield (key,), value


def fill_from_matrix(parsed: Parsed) -> Parsed:
    """Return the document with what is needed and stands only in the matrix taken from its first value there."""
    matrix = parsed.document.get("matrix")
    document, marks = parsed.document, dict(parsed.marks)
    for path, values in islice(matrix.items(), MOST_AXES) if isinstance(matrix, dict) else ():
        route = follow(path)
        is_needed = route.node is not None and "default" not in route.node and _is_field(route.keys, document)
        if is_needed and isinstance(values, list) and values and not value_at(document, route.keys)[0]:
            document = with_value(document, route.keys, values[0])
            marks[route.keys] = marks.get(("matrix", path), Mark(""))
    return replace(parsed, document=document, marks=marks)


def _is_field(keys: Keys, document: Any) -> bool:
    """Say whether this is a key of a section that is there, not a name of the user's own."""
    return len(keys) == 2 and keys[0] != "labels" and isinstance(document.get(keys[0]), dict)
