"""A kind of workload as pages offer it: its name, its form for a new recipe, and what its results have."""

from __future__ import annotations

from prony.model.base import Noun
from prony.model.check import Named


class FormField(Noun):
    """One question, and where in the recipe the answer is written.

    Several answers, separated by commas, are a matrix where `takes_several` is true. An answer that equals `default` is
    not written: the recipe means it anyway. `choices` are the answers there are; without any, the names that the
    catalogue has for `path` are offered. `has_lines`: each line is an answer of its own.
    """

    path: str
    label: str
    value: str
    help: str = ""
    default: str | None = None
    takes_several: bool = False
    is_text: bool = True
    is_choice: bool = False
    is_required: bool = True
    has_lines: bool = False
    choices: tuple[Named, ...] = ()


class KindForm(Noun):
    """Questions whose answers make a recipe; `label` says what is measured, `name` is the recipe's to begin with."""

    label: str
    name: str
    fields: tuple[FormField, ...]


class KindCard(Noun):
    """`has_load`: its jobs put load on something, so that they have curves and are followed second by second; `example`
    is the file of a recipe to begin with; `note` says what is missing where it is not installed."""

    name: str
    is_installed: bool = True
    note: str = ""
    has_load: bool = False
    example: str = ""


class Kinds(Noun):
    """The kinds of workload that are installed here."""

    items: tuple[KindCard, ...]
