"""Recipes that are not submitted, and the folders of scripts that travel with some of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prony.client.connection import ApiCall, ApiRequests, Content
from prony.errors import TransportError
from prony.model.check import Catalogue, Examples, RecipeCheck
from prony.model.kind_card import Kinds
from prony.model.queue import Compatibility, Submission
from prony.model.recipe_form import DraftedRecipe, FilledForm, RecipeForms


class RemoteRecipes:
    """Recipes: check one, see who could run it, get the schema, the examples, the names to use."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests
        self._connection = requests.connection

    def check(self, submission: Submission) -> RecipeCheck:
        """Say what is wrong with a recipe, or what it becomes and who could run it; nothing is submitted."""
        return self._requests.send(RecipeCheck, "POST", "recipes", "check", body=submission)

    def compatibility(self, submission: Submission) -> Compatibility:
        """Say which agents could run a recipe, and what each of the others lacks; nothing is submitted."""
        return self._requests.send(Compatibility, "POST", "compatibility", body=submission)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the recipes that the server takes.

        Raises:
            TransportError: The answer is no JSON.
        """
        content = self._connection.send(ApiCall("GET", ("recipes", "schema"), is_safe=True)).content
        try:
            found: dict[str, Any] = json.loads(content)
        except ValueError as exc:
            hint = "is this the address of a Prony server? check --server and PRONY_SERVER"
            raise TransportError(f"{self._connection.base} sent an answer that is not JSON", hint=hint) from exc
        return found

    def examples(self) -> Examples:
        """Return the example recipes of the server."""
        return self._requests.get(Examples, "recipes", "examples")

    def forms(self) -> RecipeForms:
        """Return the server's forms for new recipes."""
        return self._requests.get(RecipeForms, "recipes", "forms")

    def draft(self, filled: FilledForm) -> DraftedRecipe:
        """Return the recipe that the answers of a form mean; nothing is submitted."""
        return self._requests.send(DraftedRecipe, "POST", "recipes", "draft", body=filled)

    def kinds(self) -> Kinds:
        """Return the kinds of workload that the server knows."""
        return self._requests.get(Kinds, "kinds")

    def catalogue(self) -> Catalogue:
        """Return the names that a recipe may use there."""
        return self._requests.get(Catalogue, "recipes", "names")


class RemoteScripts:
    """Folders of scripts, each packed as a tar. See `prony.ports.use_cases.ScriptUseCases`."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def keep(self, sha256: str, content: Content) -> None:
        """Bring the tar of a folder, by its own SHA-256; one that is there already is not kept twice."""
        headers = {"Content-Type": "application/x-tar"}
        self._requests.connection.send(ApiCall("PUT", ("scripts", sha256), headers=headers, content=content))

    def fetch(self, sha256: str, to: Path) -> Path:
        """Write the tar to the file `to`."""
        return self._requests.fetch(to, "scripts", sha256)
