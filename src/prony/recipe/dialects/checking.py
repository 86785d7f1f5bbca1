"""A part of another program's document in, its noun out; every key that does not fit is a problem with its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from prony.model.base import Noun
from prony.recipe.dialects.draft import Draft
from prony.recipe.marks import Keys, value_at
from prony.recipe.shape import alternatives, nearest
from prony.recipe.wording import advice, expected, shown

N = TypeVar("N", bound=Noun)


def checked(kind: type[N], written: Any, keys: Keys, draft: Draft) -> N | None:
    """Read one map as strictly as a recipe is read; None where something is wrong, and then the draft tells it.

    The nouns of a dialect have no nouns inside: what each key takes is told from its own line of the schema.
    """
    if not isinstance(written, Mapping):
        draft.refuse(keys, f"must be a map, not {shown(written)}")
        return None
    try:
        return kind.model_validate_json(json.dumps(written), strict=True)
    except ValidationError as exc:
        fields = kind.model_json_schema()["properties"]
        for place in dict.fromkeys(detail["loc"][:1] for detail in exc.errors(include_url=False)):
            detail = next(one for one in exc.errors(include_url=False) if one["loc"][:1] == place)
            _tell(detail, fields, written, keys, draft)
        return None


def _tell(detail: Any, fields: Mapping[str, Any], written: Mapping[str, Any], keys: Keys, draft: Draft) -> None:
    if not detail["loc"]:
        draft.refuse(keys, str(detail["ctx"]["error"]))
        return
    name = detail["loc"][0]
    place = (*keys, name)
    node = fields.get(str(name), {})
    if detail["type"] == "extra_forbidden":
        near = nearest(str(name), fields)
        draft.refuse(place, "unknown key", f"did you mean {near}?" if near else f"known here: {', '.join(fields)}")
    elif detail["type"] == "missing":
        draft.refuse(place, f"is missing: {node.get('description', 'it is needed')}")
    elif detail["type"] == "value_error":
        draft.refuse(place, str(detail["ctx"]["error"]))
    elif not alternatives(node):
        draft.refuse(place, f"does not fit here: {detail['msg'].lower()}")
    else:
        _, value = value_at(written, (name,))
        draft.refuse(place, f"must be {expected(node)}, not {shown(value)}", advice(node, value))
