"""Comparison rules: how another program decides whether one result is worse than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prony.model.comparison import Contrast
    from prony.model.experiment_data import Entry


class ComparisonRule(Protocol):
    """What an entry point of `prony.comparison_rules` names; its name is what `prony compare --rule` takes.

    `about` says in few words how it decides.
    """

    about: str

    def __call__(self, baseline: Entry, candidate: Entry) -> tuple[Contrast, ...]:
        """Judge one pair of jobs.

        Args:
            baseline: What is held against.
            candidate: What is judged.

        Returns:
            A contrast for each limit; those that a side has no number for are insufficient.

        Raises:
            InputError: The rule has nothing to say of such jobs.
        """
        ...
