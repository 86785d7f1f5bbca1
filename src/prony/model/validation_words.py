"""Say in plain words which value pydantic refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

_WHOLE = "must be a whole number"
_NUMBER = "must be a number"
_TRUTH = "must be true or false"
_LIST = "must be a list"
_MAP = "must be a map of keys and values"
_DATE = "must be a date with a time, as in 2026-01-31T08:00:00Z"
# By pydantic's name of the error. What stands in braces is in the context that pydantic gives with it.
_WORDS = {
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "datetime_from_date_parsing": _DATE,
    "datetime_parsing": _DATE,
    "datetime_type": _DATE,
    "dict_type": _MAP,
    "enum": "must be {expected}",
    "extra_forbidden": "is not known here",
    "finite_number": "must be a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": "is too large a number",
    "int_type": _WHOLE,
    "invalid_key": "has a key that is not text",
    "json_invalid": "is not JSON: {error}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "list_type": _LIST,
    "literal_error": "must be {expected}",
    "mapping_type": _MAP,
    "missing": "is missing",
    "model_attributes_type": _MAP,
    "model_type": _MAP,
    "multiple_of": "must be a multiple of {multiple_of}",
    "none_required": "must be null or left out",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_too_long": "is too long: at most {max_length} characters are allowed",
    "string_too_short": "is too short: it needs {min_length} or more characters",
    "string_type": "must be text",
    "string_unicode": "must be text in UTF-8",
    "timezone_aware": "needs a time zone, as in 2026-01-31T08:00:00Z",
    "too_long": "has too many entries: at most {max_length} are allowed",
    "too_short": "has too few entries: it needs {min_length} or more",
    "tuple_type": _LIST,
    "union_tag_invalid": "has the unknown {discriminator} '{tag}': use one of {expected_tags}",
    "union_tag_not_found": "lacks {discriminator}",
}


def describe_invalid_value(detail: Mapping[str, Any]) -> str:
    """Return what is wrong with one value, to stand behind its name; `detail` is one of `ValidationError.errors()`.

    A check of our own speaks for itself. So does pydantic where the table above has no words for its error.
    """
    message = str(detail["msg"])
    if detail["type"] in ("value_error", "assertion_error"):
        return message.partition(", ")[2]
    words = _WORDS.get(detail["type"])
    return message if words is None else words.format_map(_drop_zero_fractions(detail.get("ctx", {})))


def _drop_zero_fractions(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits as people write them: 500 and not 500.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }


def describe_invalid(error: ValidationError, *, whole: str = "") -> str:
    """Return where the first wrong value is and what is wrong; `whole` names it where all of the input is wrong.

    What was given is left out: it may be a secret.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(key)[:100] for key in first["loc"]) or whole
    words = describe_invalid_value(first)
    return f"{place}: {words}" if place else words
