"""The histories of one machine's own store: each use case is one transaction, and whatever waits is judged first."""

from __future__ import annotations

from collections.abc import Callable
from getpass import getuser

from prony.app import history as steps
from prony.errors import InputError, StoreError
from prony.model.estimate import Summary
from prony.model.history import OPEN, Acknowledgement, Baseline, Change, ChangeState, History, NewBaseline, Series
from prony.ports.clock import SystemClock
from prony.store import result_rows
from prony.store import series as rows
from prony.store.database import reading, writing
from prony.store.folder import read_nouns
from prony.store.series_points import place_in_history
from prony.store.store import Store

_AT_ONCE = 100


class Histories:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = SystemClock()

    def judge(self) -> tuple[Change, ...]:
        """Judge every series with new results; return the changes that are new, or stand otherwise now."""
        found: list[Change] = []
        while True:
            with reading(self.store.engine) as connection:
                waiting = rows.waiting(connection, _AT_ONCE)
                judgements = [steps.judge(connection, one) for one in waiting]
            if not waiting:
                return tuple(found)
            with writing(self.store.engine) as connection:
                for judgement in judgements:
                    found += steps.keep(connection, judgement)

    def series(self, name: str | None = None) -> tuple[Series, ...]:
        """Return every series, or those of a recipe or of the beginning of an id."""
        self.judge()
        with reading(self.store.engine) as connection:
            if name is not None:
                return steps.series_named(connection, name)
            return rows.page(connection, limit=100_000).items

    def history(self, series_id: str, metric: str | None = None) -> History:
        with reading(self.store.engine) as connection:
            return steps.history(connection, series_id, metric)

    def changes(self, *, every: bool = False) -> tuple[Change, ...]:
        """Return the changes that are open, the newest first, or every one."""
        self.judge()
        with reading(self.store.engine) as connection:
            states = tuple(ChangeState) if every else OPEN
            return rows.change_page(connection, states=states, limit=100_000).items

    def ack(self, text: str, words: Acknowledgement) -> Change:
        """Acknowledge the change that a person means by its id or the beginning of it."""
        self.judge()
        with writing(self.store.engine) as connection:
            matches = rows.changes_named(connection, text)
            if len(matches) > 1 and text not in matches:
                raise InputError(
                    f"{text!r} may be any of {len(matches)} changes", hint="write more of it", code="ambiguous"
                )
            change_id = matches[0] if len(matches) == 1 else text
            change = steps.acknowledge(connection, change_id, words, who=_me(), at=self.clock.now())
        self.judge()
        return change

    def baseline(self, series_id: str) -> Baseline:
        with reading(self.store.engine) as connection:
            return steps.baseline(connection, series_id)

    def set_baseline(self, series_id: str, wanted: NewBaseline) -> Baseline:
        with writing(self.store.engine) as connection:
            return steps.set_baseline(connection, series_id, wanted, who=_me(), at=self.clock.now())

    def clear_baseline(self, series_id: str) -> None:
        with writing(self.store.engine) as connection:
            steps.clear_baseline(connection, series_id)

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Make every point again from the result folders; what people decided stays. Return how many there are."""
        with reading(self.store.engine) as connection:
            kept = result_rows.standing(connection)
        made = []
        for number, row in enumerate(kept, 1):
            progress(number, len(kept))
            try:
                contents = read_nouns(self.store.home.results / row.folder)
            except StoreError:  # a folder that is damaged has no point, and keeps nobody else from theirs
                continue
            place = place_in_history(contents, Summary.read_json(row.summary))
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
