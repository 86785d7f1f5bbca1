"""Histories of a server: series of results, what changed in them, and their baselines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prony.client.connection import ApiRequests
from prony.client.resolve_id import exists, only_match
from prony.errors import InputError
from prony.model.history import (
    Acknowledgement,
    Baseline,
    Change,
    ChangeState,
    History,
    NewBaseline,
    Series,
    SeriesState,
    select_branch,
)
from prony.model.queue import Page
from prony.ports.use_cases import iterate_pages


class RemoteHistories:
    """Histories of results. See `prony.ports.use_cases.HistoryUseCases`."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def find(self, text: str, *, branch: str | None = None) -> tuple[Series, ...]:
        """Return the series that a person means by a recipe's name on a branch, or the one by the beginning of its id.

        Raises:
            NotFoundError: There is no such series.
            InputError: The ids of several begin like that, with the code `ambiguous`.
        """
        named = tuple(iterate_pages(partial(self.page, name=text)))
        if named:
            return select_branch(named, text, branch)
        by_id = {one.id: one for one in iterate_pages(self.page) if text and one.id.startswith(text)}
        return (by_id[only_match(list(by_id), text, "series", "prony history")],)

    def find_change(self, text: str) -> str:
        """Return the id of the change that a person means by it, or by the beginning of it.

        Raises:
            NotFoundError: There is no such change.
            InputError: Several begin like that, with the code `ambiguous`.
        """
        if exists(self.change, text):
            return text
        ids = [one.id for one in iterate_pages(self.changes)]
        return only_match(
            [one for one in ids if text and one.startswith(text)], text, "change", "prony watch-regressions"
        )

    def rebuild(self, progress: Callable[[int, int], None]) -> int:  # noqa: ARG002 - the interface has it
        """Refuse: only where the home is are the folders that histories are made of.

        Raises:
            InputError: Always.
        """
        raise InputError(
            "histories of a server can only be rebuilt on its own machine", hint="run there: prony history --rebuild"
        )

    def page(
        self,
        *,
        name: str | None = None,
        state: SeriesState | None = None,
        branch: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Series]:
        """Return series by name, of a branch (empty: the default one) or of all, a page at a time."""
        return self._requests.get(
            Page[Series], "series", name=name, state=state, branch=branch, limit=limit, cursor=cursor
        )

    def get(self, series_id: str, *, metric: str | None = None) -> History:
        """Return one series with its points, levels and changes; of its headline metric, or of another."""
        return self._requests.get(History, "series", series_id, metric=metric)

    def baseline(self, series_id: str) -> Baseline:
        """Return the result that a series is held against."""
        return self._requests.get(Baseline, "series", series_id, "baseline")

    def set_baseline(self, series_id: str, baseline: NewBaseline) -> Baseline:
        """Hold a series against a result from now on."""
        return self._requests.send(Baseline, "PUT", "series", series_id, "baseline", body=baseline)

    def clear_baseline(self, series_id: str) -> None:
        """Hold a series against no result; the result itself stays."""
        self._requests.do("DELETE", "series", series_id, "baseline")

    def changes(
        self,
        *,
        state: ChangeState | None = None,
        kind: str | None = None,
        branch: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Change]:
        """Return the changes that are open, or those in one state, the newest first."""
        return self._requests.get(
            Page[Change], "changes", state=state, kind=kind, branch=branch, limit=limit, cursor=cursor
        )

    def change(self, change_id: str) -> Change:
        """Return one change."""
        return self._requests.get(Change, "changes", change_id)

    def ack(self, change_id: str, acknowledgement: Acknowledgement) -> Change:
        """Note that a person knows of a change."""
        return self._requests.send(Change, "POST", "changes", change_id, "ack", body=acknowledgement)
