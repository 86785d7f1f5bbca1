"""Check the facts and comparisons in a document's `place.where`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from prony.model.fact import advice, comparing
from prony.model.fact_condition import comparison
from prony.recipe.positions import Keys, Marks, Parsed, problem_at, value_at
from prony.recipe.problems import Problem

# As many as there may be: finding the nearest name for each of a hundred thousand would take minutes.
_MOST = 50
_MOST_VALUES = 100
_MOST_LETTERS = 200


def where_problems(parsed: Parsed) -> Iterator[Problem]:
    """Find every fact that nothing is called and every comparison that cannot be understood."""
    _, where = value_at(parsed.document, ("place", "where"))
    for name, wanted in islice(where.items(), _MOST) if isinstance(where, dict) else ():
        keys: Keys = ("place", "where", name)
        if comparing(name) is None:
            yield problem_at(parsed.marks, keys, "no fact has this name", advice(name))
        elif isinstance(wanted, list):
            if len(wanted) > _MOST_VALUES:
                yield problem_at(parsed.marks, keys, f"has {len(wanted)} values: the most is {_MOST_VALUES}")
            for index, one in enumerate(wanted[:_MOST_VALUES]):
                yield from _misunderstood(name, one, (*keys, index), parsed.marks)
        else:
            yield from _misunderstood(name, wanted, keys, parsed.marks)


def _misunderstood(name: str, wanted: Any, keys: Keys, marks: Marks) -> Iterator[Problem]:
    if not isinstance(wanted, bool | int | float | str):
        return  # told already, as a value that does not fit
    if isinstance(wanted, str) and len(wanted) > _MOST_LETTERS:
        yield problem_at(marks, keys, f"is text of {len(wanted)} letters: the most is {_MOST_LETTERS}")
        return
    try:
        comparison(name, wanted)
    except ValueError as exc:
        yield problem_at(marks, keys, str(exc))
