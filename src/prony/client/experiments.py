"""Operations on experiments: submit one, list, change, stop, watch, and take home what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from prony.client.connection import Asked, Call
from prony.client.request_shapes import Asking
from prony.client.watching import Update, updates
from prony.errors import PronyError
from prony.model.experiment import ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.listing import Filters, Glance, Listing, Sort
from prony.model.queue import ExperimentView, Modification, Page, Submission

_ALL = Filters()


class Experiments(Asking):
    def submit(self, submission: Submission, *, key: str | None = None) -> ExperimentView:
        """Hand in a recipe; with the same `key` again, the answer is the experiment that it made the first time."""
        return self._create(ExperimentView, "experiments", body=submission, key=key)

    def experiments(
        self,
        *,
        state: ExperimentState | None = None,
        name: str | None = None,
        schedule: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[ExperimentView]:
        """Return the newest first, a page at a time."""
        return self._get(
            Page[ExperimentView], "experiments", state=state, name=name, schedule=schedule, limit=limit, cursor=cursor
        )

    def listing(
        self, filters: Filters = _ALL, *, sort: Sort = "newest", limit: int = 100, cursor: str | None = None
    ) -> Listing:
        """Search experiments: light rows, with a headline each."""
        asked = filters.model_dump(mode="json")
        return self._get(Listing, "listing", **asked, sort=sort, limit=limit, cursor=cursor)

    def overview(self) -> Glance:
        """Return what to look at first."""
        return self._get(Glance, "overview")

    def experiment(self, experiment_id: str) -> ExperimentView:
        return self._get(ExperimentView, "experiments", experiment_id)

    def modify(self, experiment_id: str, modification: Modification) -> ExperimentView:
        return self._send(ExperimentView, "PATCH", "experiments", experiment_id, body=modification)

    def delete(self, experiment_id: str, *, force: bool = False) -> None:
        self._do("DELETE", "experiments", experiment_id, force=force)

    def cancel_experiment(self, experiment_id: str) -> ExperimentView:
        """Stop every job that has not ended; what was measured is kept."""
        return self._send(ExperimentView, "POST", "experiments", experiment_id, "cancel")

    def retry_experiment(self, experiment_id: str) -> ExperimentView:
        """Have every failed, partial or cancelled job wait again."""
        return self._send(ExperimentView, "POST", "experiments", experiment_id, "retry")

    def rerun(self, experiment_id: str, *, key: str | None = None) -> ExperimentView:
        """Submit the recipe of an earlier experiment again."""
        return self._create(ExperimentView, "experiments", experiment_id, "rerun", key=key)

    def watch(
        self, experiment_id: str, *, on_lost: Callable[[PronyError, float], None] = lambda *_: None
    ) -> Iterator[Update]:
        """Yield all that happens until the experiment has ended: first how everything stands, then what changes.

        A lost connection is made again for ever, and begins with how everything stands by then; `on_lost` is told why
        and after how many seconds it is tried.
        """
        return updates(self._connection, experiment_id, on_lost)

    def results(self, experiment_id: str) -> ExperimentData:
        """Return all numbers there are; the folders of its entries are on the server and have no path here."""
        return self._get(ExperimentData, "experiments", experiment_id, "results")

    def report(self, experiment_id: str, report_format: str = "html", *, strict: bool = False) -> bytes:
        query: dict[str, Asked] = {"format": report_format, "strict": strict}
        call = Call("GET", ("experiments", experiment_id, "report"), query, is_safe=True)
        return self._connection.send(call).content

    def export(self, experiment_id: str, to: Path, export_format: str = "folder") -> Path:
        """Write a tar of what `prony export` writes to the file `to`."""
        return self._fetch(to, "experiments", experiment_id, "export", format=export_format)
