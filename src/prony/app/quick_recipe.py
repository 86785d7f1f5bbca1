"""A recipe that was made of what somebody named on a command line, with what had to be assumed for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prony.model.assumption import Assumption


@dataclass(frozen=True)
class QuickRecipe:
    """A recipe as a document, and what was assumed to write it."""

    document: dict[str, Any]
    assumptions: tuple[Assumption, ...] = ()

    def having(self, more: Sequence[Assumption]) -> QuickRecipe:
        """Return the same with more that was assumed."""
        return QuickRecipe(self.document, (*self.assumptions, *more))

    @property
    def text(self) -> str:
        """The recipe as YAML, with what was assumed as comments above it."""
        from prony.recipe.yaml_write import write_yaml

        return self.comments + write_yaml(self.document)

    @property
    def comments(self) -> str:
        """A line for each thing that was assumed, with the key that changes it."""
        lines = (
            f"# {'Guess' if one.is_guess else 'Assumed'}: {one.what}; to change it: {one.key}"
            for one in self.assumptions
        )
        return "".join(f"{' '.join(line.split())}\n" for line in lines)


def plain_name(text: str) -> str:
    """Return a text as the name of an experiment."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "bench"


def join_as_name(names: Sequence[str]) -> str:
    """Return the name of an experiment about several things."""
    return "-vs-".join(names)[:100].rstrip("-._")
