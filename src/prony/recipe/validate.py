"""Validate a document as a recipe and describe its problems in plain words.

The facts and comparisons in `place.where` are checked too, and values that a format can express and a recipe cannot,
such as dates and infinities, are rejected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, time
from itertools import islice
from typing import Any

from pydantic import ValidationError

from prony.model.fact import advise_fact, comparing, parse_comparison
from prony.model.recipe import Recipe
from prony.model.validation_words import describe_invalid_value
from prony.recipe.positions import Keys, Marks, Parsed, problem_at, value_at
from prony.recipe.problems import DocumentProblem
from prony.recipe.schema_lookup import (
    advice,
    alternatives,
    axis_trouble,
    describe_expected,
    elsewhere,
    known_keys,
    meant,
    node_at,
    show_value,
    words,
)

Details = Mapping[str, Any]
# Nobody reads more, and finding the nearest key for each of a hundred thousand would take minutes.
_MOST = 200


def validate_document(document: Mapping[str, Any]) -> Recipe:
    """Validate as strictly as people deserve: `"8"` is no number, `1.0` no whole one, `true` neither.

    The way through JSON is what lets a list stand for a tuple while everything else stays strict.
    """
    content = {key: value for key, value in document.items() if key != "$schema"}
    return Recipe.model_validate_json(json.dumps(content), strict=True)


def check_document(parsed: Parsed) -> tuple[Recipe | None, list[DocumentProblem]]:
    """Return the recipe where the document is one, and every problem of the text so far."""
    problems = list(parsed.problems)
    try:
        recipe = validate_document(parsed.document)
    except ValidationError as exc:
        told = {problem.path for problem in problems}
        found = problems_of(exc, parsed.document, parsed.marks)
        return None, problems + [problem for problem in found if problem.path not in told]
    return (None if problems else recipe), problems


def problems_of(error: ValidationError, document: Any, marks: Marks) -> list[DocumentProblem]:
    """Translate what pydantic says into one problem a place, in a person's words."""
    found: dict[Keys, DocumentProblem] = {}
    misspelt: set[Keys] = set()
    details = sorted(error.errors(include_url=False), key=lambda item: item["type"] == "missing")
    for detail in details[:_MOST]:
        keys = _keys_in(document, detail)
        if keys in found or keys in misspelt:
            continue
        slip = _slip_for_kind(document) if detail["type"] == "union_tag_not_found" else None
        if slip is not None:
            found[slip] = problem_at(marks, slip, "unknown key", "did you mean kind?")
        elif detail["type"] == "extra_forbidden":
            near = meant(keys[:-1], str(keys[-1]))
            misspelt.add((*keys[:-1], near or ""))
            found[keys] = _unknown(keys, near, marks)
        else:
            found[keys] = _problem(detail, keys, document, marks)
    return list(found.values())


def _unknown(keys: Keys, near: str | None, marks: Marks) -> DocumentProblem:
    if near == keys[-1]:  # the schema knows it, of the other kind
        return problem_at(marks, keys, "unknown key", f"it belongs to another kind of {keys[-2]}")
    hint = f"did you mean {near}?" if near else elsewhere(keys[:-1], str(keys[-1]))
    return problem_at(marks, keys, "unknown key", hint)


def _slip_for_kind(document: Any) -> Keys | None:
    """Return the key that somebody wrote in the place of `kind`, which alone says what the others mean."""
    keys: Keys = ("workload",)
    written = document.get("workload") if isinstance(document, Mapping) else None
    names = written if isinstance(written, Mapping) else {}
    unknown = [str(name) for name in names if str(name) not in known_keys(keys)]
    return next(((*keys, name) for name in unknown if meant(keys, name) == "kind"), None)


def _keys_in(document: Any, detail: Details) -> Keys:
    """Return the place in the document: pydantic adds the name of each way it tried, which nobody wrote."""
    keys: Keys = ()
    loc = detail["loc"]
    if detail["type"].startswith("union_tag"):  # what says which kind it is, is missing or unknown
        return (*loc, "kind")
    if loc[:1] == ("workload",):
        loc = (*loc[:1], *loc[2:])  # the kind that it was taken for, which may be the name of a key as well
    for key in loc:
        if value_at(document, (*keys, key))[0]:
            keys = (*keys, key)
    return (*keys, loc[-1]) if detail["type"] == "missing" else keys


def _problem(detail: Details, keys: Keys, document: Any, marks: Marks) -> DocumentProblem:
    node = node_at(keys) or {}
    if detail["type"] in ("missing", "union_tag_not_found"):
        return problem_at(marks, keys, f"is missing: {node.get('description', 'it is needed')}", _example(keys))
    if detail["type"] == "value_error":
        return problem_at(marks, keys, str(detail["ctx"]["error"]))
    trouble = axis_trouble(str(keys[1])) if keys[:1] == ("matrix",) and len(keys) > 1 and keys[1] != "exclude" else None
    if trouble:
        return problem_at(marks, keys[:2], *trouble)
    return _misfit(detail, keys, document, marks)


def _misfit(detail: Details, keys: Keys, document: Any, marks: Marks) -> DocumentProblem:
    _, value = value_at(document, keys)
    node = node_at(keys) or {}
    if not alternatives(node):
        return problem_at(marks, keys, f"does not fit here: {describe_invalid_value(detail)}")
    if detail["type"] == "too_long":
        return problem_at(marks, keys, f"is too long: the most is {detail['ctx']['max_length']}")
    hint = advice(node, value)
    if keys == ("workload", "kind") and isinstance(value, str):
        return problem_at(
            marks, keys, f"no kind of workload is called {value!r}", hint or f"known: {', '.join(words(node))}"
        )
    if detail["type"] == "string_pattern_mismatch":
        hint = node.get("description", "")
    return problem_at(marks, keys, f"must be {describe_expected(node)}, not {show_value(value)}", hint)


def _example(keys: Keys) -> str:
    for way in alternatives(node_at(keys) or {}):
        if "const" in way or way.get("examples"):
            return f"for example {keys[-1]}: {way.get('const') or way['examples'][0]}"
        if way.get("required"):
            return f"it is a map with {', '.join(way['required'])} and more"
    return ""


# As many as there may be: finding the nearest name for each of a hundred thousand would take minutes.
_MOST_FACTS = 50
_MOST_VALUES = 100
_MOST_LETTERS = 200


def where_problems(parsed: Parsed) -> Iterator[DocumentProblem]:
    """Find every fact that nothing is called and every comparison that cannot be understood."""
    _, where = value_at(parsed.document, ("place", "where"))
    for name, wanted in islice(where.items(), _MOST_FACTS) if isinstance(where, dict) else ():
        keys: Keys = ("place", "where", name)
        if comparing(name) is None:
            yield problem_at(parsed.marks, keys, "no fact has this name", advise_fact(name))
        elif isinstance(wanted, list):
            if len(wanted) > _MOST_VALUES:
                yield problem_at(parsed.marks, keys, f"has {len(wanted)} values: the most is {_MOST_VALUES}")
            for index, one in enumerate(wanted[:_MOST_VALUES]):
                yield from _misunderstood(name, one, (*keys, index), parsed.marks)
        else:
            yield from _misunderstood(name, wanted, keys, parsed.marks)


def _misunderstood(name: str, wanted: Any, keys: Keys, marks: Marks) -> Iterator[DocumentProblem]:
    if not isinstance(wanted, bool | int | float | str):
        return  # told already, as a value that does not fit
    if isinstance(wanted, str) and len(wanted) > _MOST_LETTERS:
        yield problem_at(marks, keys, f"is text of {len(wanted)} letters: the most is {_MOST_LETTERS}")
        return
    try:
        parse_comparison(name, wanted)
    except ValueError as exc:
        yield problem_at(marks, keys, str(exc))


def sound(parsed: Parsed) -> Parsed:
    """Return the document with a problem and a stand-in for each date, infinity, giant and half character."""
    problems: list[DocumentProblem] = []
    document = _sound(parsed.document, (), parsed.marks, problems)
    return replace(parsed, document=document).having(*problems)


def _sound(value: Any, keys: Keys, marks: Marks, problems: list[DocumentProblem]) -> Any:
    """Return the value without what a format can say and a recipe cannot, each with a problem and a stand-in."""
    if isinstance(value, dict):
        names = {key: _sound(key, (*keys, key), marks, problems) for key in value}
        return {names[key]: _sound(inner, (*keys, key), marks, problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner, (*keys, index), marks, problems) for index, inner in enumerate(value)]
    message, stand_in = _unsound(value)
    if message:
        problems.append(problem_at(marks, keys, message, "write it as text, in quotes"))
    return stand_in if message else value


def _unsound(value: Any) -> tuple[str, Any]:
    if isinstance(value, date | time):
        return "is a date or a time, which no key of a recipe takes", str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, not {value}", 0
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "is a whole number beyond 64 bits", 0
    if isinstance(value, str) and (mended := value.encode(errors="replace").decode()) != value:
        return "has an incomplete character in it (a lone surrogate)", mended
    return "", value
