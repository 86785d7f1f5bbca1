"""Operations on histories: series and their changes, a change acknowledged, a baseline pinned."""

from __future__ import annotations

from prony.client.request_shapes import Asking
from prony.model.history import (
    Acknowledgement,
    Baseline,
    Change,
    ChangeState,
    History,
    NewBaseline,
    Series,
    SeriesState,
)
from prony.model.queue import Page


class Histories(Asking):
    def series(
        self,
        *,
        name: str | None = None,
        state: SeriesState | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Series]:
        """Return series by name, a page at a time."""
        return self._get(Page[Series], "series", name=name, state=state, limit=limit, cursor=cursor)

    def history(self, series_id: str, *, metric: str | None = None) -> History:
        return self._get(History, "series", series_id, metric=metric)

    def baseline(self, series_id: str) -> Baseline:
        return self._get(Baseline, "series", series_id, "baseline")

    def set_baseline(self, series_id: str, baseline: NewBaseline) -> Baseline:
        return self._send(Baseline, "PUT", "series", series_id, "baseline", body=baseline)

    def clear_baseline(self, series_id: str) -> None:
        self._do("DELETE", "series", series_id, "baseline")

    def changes(
        self,
        *,
        state: ChangeState | None = None,
        kind: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Change]:
        """Return the changes that are open, or those in one state, the newest first."""
        return self._get(Page[Change], "changes", state=state, kind=kind, limit=limit, cursor=cursor)

    def change(self, change_id: str) -> Change:
        return self._get(Change, "changes", change_id)

    def ack(self, change_id: str, acknowledgement: Acknowledgement) -> Change:
        """Note that a person knows of a change."""
        return self._send(Change, "POST", "changes", change_id, "ack", body=acknowledgement)
