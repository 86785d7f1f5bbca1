"""What pydantic refuses is said in words that a person without pydantic understands."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors

from prony.model import validation_words
from prony.model.quantity import DurationNs
from prony.model.validation_words import describe_invalid, describe_invalid_value


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, le=500)
    share: float = Field(default=0.5, gt=0.0)
    colour: Literal["red", "green"] = "red"
    tags: tuple[str, ...] = Field(default=(), max_length=2)
    wait: DurationNs = 0


def refusal(given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(given)
    return describe_invalid(caught.value, whole="the order")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": 501}, "count: must be 500 or less"),
        ({"count": "many"}, "count: must be a whole number"),
        ({"share": 0}, "share: must be more than 0"),
        ({"colour": "blue"}, "colour: must be 'red' or 'green'"),
        ({"tags": ["a", "b", "c"]}, "tags: has too many entries: at most 2 are allowed"),
        ({"tags": ["a", 3]}, "tags.1: must be text"),
        ({"size": 1}, "size: is not known here"),
        ([], "the order: must be a map of keys and values"),
    ],
)
def test_a_refused_value_is_named_with_what_is_needed(given: Any, said: str) -> None:
    assert refusal(given) == said


def test_a_check_of_our_own_speaks_for_itself() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(DurationNs).validate_python("soon")
    detail = caught.value.errors()[0]
    assert describe_invalid_value(detail) == str(detail["ctx"]["error"])


def test_what_was_given_is_not_repeated() -> None:
    assert "hunter2" not in refusal({"count": "hunter2"})


def test_every_phrase_is_filled_from_what_pydantic_gives_with_its_error() -> None:
    known: dict[str, dict[str, Any]] = {
        error["type"]: error.get("example_context") or {} for error in list_all_errors()
    }
    assert validation_words._WORDS.keys() <= known.keys()
    for name in validation_words._WORDS:
        context = known[name]
        message = PydanticKnownError(name, context or None).message()  # type: ignore[arg-type] # every name is one
        said = describe_invalid_value({"type": name, "msg": message, "ctx": context})
        assert said != message
        assert "{" not in said
