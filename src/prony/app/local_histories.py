"""Histories of this machine's home: each use case is one transaction, and new results are judged first."""

from __future__ import annotations

from collections.abc import Callable
from getpass import getuser

from prony.app import change_decisions
from prony.app import history as steps
from prony.app.results import renew_summary
from prony.errors import InputError, StoreError
from prony.model.estimate import Summary
from prony.model.history import Acknowledgement, Baseline, Change, History, NewBaseline, Series
from prony.model.queue import Page
from prony.ports.clock import SystemClock
from prony.store import result_rows
from prony.store import series as rows
from prony.store.database import reading, writing
from prony.store.folder import read_nouns
from prony.store.series_points import place_in_history
from prony.store.store import Store

_AT_ONCE = 100


class LocalHistories:
    """Histories of results. See `prony.ports.use_cases.HistoryUseCases`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = SystemClock()

    def judge(self) -> tuple[Change, ...]:
        """Judge every series with new results; return the changes that are new, or stand otherwise now."""
        found: list[Change] = []
        while True:
            with reading(self.store.engine) as connection:
                waiting = rows.waiting(connection, _AT_ONCE)
                judgements = [steps.judge_series(connection, one) for one in waiting]
            if not waiting:
                return tuple(found)
            with writing(self.store.engine) as connection:
                for judgement in judgements:
                    found += steps.save_judgement(connection, judgement)

    def find(self, text: str, *, branch: str | None = None) -> tuple[Series, ...]:
        """Return the series of a recipe's name on a branch, or of the beginning of an id; at least one."""
        self.judge()
        with reading(self.store.engine) as connection:
            return steps.series_named(connection, text, branch)

    def page(self, *, branch: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Series]:
        """Return series by name, of a branch (empty: the default one) or of all, a page at a time."""
        self.judge()
        with reading(self.store.engine) as connection:
            return rows.page(connection, branch=branch, limit=limit, cursor=cursor)

    def get(self, series_id: str, *, metric: str | None = None) -> History:
        """Return one series with its points, levels and changes; of its headline metric, or of another."""
        with reading(self.store.engine) as connection:
            return steps.history(connection, series_id, metric)

    def changes(self, *, branch: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[Change]:
        """Return the changes that are open, of a branch (empty: the default one) or of all, the newest first, a page at
        a time."""
        self.judge()
        with reading(self.store.engine) as connection:
            page = rows.change_page(connection, branch=branch, limit=limit, cursor=cursor)
            return steps.mark_doubtful(connection, page, runs_may_decide=False)

    def find_change(self, text: str) -> str:
        """Return the id of the change that a person means by it, or by the beginning of it.

        Raises:
            InputError: Several begin like that, with the code `ambiguous`.
        """
        self.judge()
        with reading(self.store.engine) as connection:
            matches = rows.changes_named(connection, text)
            if len(matches) > 1 and text not in matches:
                raise InputError(
                    f"{text!r} matches {len(matches)} changes", hint="type more of the id", code="ambiguous"
                )
            return matches[0] if len(matches) == 1 else rows.change(connection, text).id

    def ack(self, change_id: str, acknowledgement: Acknowledgement) -> Change:
        """Note that a person knows of a change."""
        with writing(self.store.engine) as connection:
            change = change_decisions.acknowledge(
                connection, change_id, acknowledgement, who=_me(), at=self.clock.now()
            )
        self.judge()
        return change

    def baseline(self, series_id: str) -> Baseline:
        """Return the result that a series is held against."""
        with reading(self.store.engine) as connection:
            return steps.baseline(connection, series_id)

    def set_baseline(self, series_id: str, baseline: NewBaseline) -> Baseline:
        """Hold a series against a result from now on."""
        with writing(self.store.engine) as connection:
            return steps.set_baseline(connection, series_id, baseline, who=_me(), at=self.clock.now())

    def clear_baseline(self, series_id: str) -> None:
        """Hold a series against no result; the result itself stays."""
        with writing(self.store.engine) as connection:
            steps.clear_baseline(connection, series_id)

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Make every point again from the result folders; what people decided stays. Return how many there are."""
        with reading(self.store.engine) as connection:
            kept = result_rows.standing_results(connection)
        made = []
        for number, row in enumerate(kept, 1):
            progress(number, len(kept))
            try:
                contents = read_nouns(self.store.home.results / row.folder)
            except StoreError:  # a folder that is damaged has no point, and keeps nobody else from theirs
                continue
            summary = renew_summary(Summary.read_json(row.summary), self.store.home.results / row.folder)
            place = place_in_history(contents, summary)
            made += [place] if place is not None else []
        with writing(self.store.engine) as connection:
            rows.forget(connection)
            for series, point in made:
                result_rows.keep_point(connection, series, point)
            rows.drop_empty(connection)
        self.judge()
        return len(made)


def _me() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        return ""
