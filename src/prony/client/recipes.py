"""Operations on recipes that are not submitted: check one, get the schema, the examples, the names to use."""

from __future__ import annotations

import json
from typing import Any

from prony.client.connection import Call
from prony.client.request_shapes import Asking
from prony.errors import TransportError
from prony.model.check import Catalogue, Examples, RecipeCheck
from prony.model.queue import Submission


class Recipes(Asking):
    def check(self, submission: Submission) -> RecipeCheck:
        """Say what is wrong with a recipe, or what it becomes and who could run it; nothing is submitted."""
        return self._send(RecipeCheck, "POST", "recipes", "check", body=submission)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the recipes that the server takes."""
        content = self._connection.send(Call("GET", ("recipes", "schema"), is_safe=True)).content
        try:
            found: dict[str, Any] = json.loads(content)
        except ValueError as exc:
            raise TransportError(f"{self._connection.base} answered what is no JSON") from exc
        return found

    def examples(self) -> Examples:
        return self._get(Examples, "recipes", "examples")

    def catalogue(self) -> Catalogue:
        """Return the names that a recipe may use there."""
        return self._get(Catalogue, "recipes", "names")
