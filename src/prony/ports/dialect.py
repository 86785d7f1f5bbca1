"""Dialects: recipes as another program writes them, translated into ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from prony.recipe.dialects.translated_document import Translation
    from prony.recipe.positions import Parsed


class Dialect(Protocol):
    """An entry point of `prony.dialects`; its name is what an experiment remembers as its dialect.

    `title` is what a text of it is called, as in "an X recipe". `keeps_folder_name`: a folder of scripts that is given
    beside the recipe is laid out under its own name.
    """

    title: ClassVar[str]
    keeps_folder_name: ClassVar[bool]

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Tell by the names of its sections whether a document is written in this dialect.

        Args:
            document: A parsed document without a `workload`. What is valid in one dialect must fit no other.

        Returns:
            Whether it is this dialect's, right or wrong.
        """
        ...

    def translate(self, parsed: Parsed) -> Translation:
        """Translate a document that fits.

        Args:
            parsed: The document with the line of each of its keys.

        Returns:
            A recipe's document, with notes on what could not be honoured.

        Raises:
            RecipeError: It is wrong by the dialect's own rules; every problem is told with its line.
        """
        ...
