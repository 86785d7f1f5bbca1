"""Decide what becomes of a change that was found: by a person's word, or by the runs that confirm it.

Each step takes an open connection, so that a server does it by its own writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.comparison import effect_text
from prony.model.history import OPEN, Acknowledgement, Change, ChangeState
from prony.model.metric import is_time_or_rate
from prony.store import series as rows
from prony.store.database import Connection

if TYPE_CHECKING:
    from prony.analyse.history.confirmation import Repeats
    from prony.stats.shift import Shift

_ANSWERS = {
    "confirmed": "confirmed",
    "rejected": "rejected",
    "open": "open",
    "machine": "but the canary shows that the machine changed too",
    "restless": "but results of this machine vary as much by themselves, or are too few to tell: use `prony duet`",
    "unsettled": "but it is unknown whether the machine or the code changed",
}


def acknowledge(
    connection: Connection, change_id: str, words: Acknowledgement, *, who: str, at: datetime
) -> Change:  # fmt: skip
    """Note that a person knows of a change: it is told no more, and its level is the one to be held."""
    found = rows.change(connection, change_id)
    if found.state not in OPEN:
        raise ConflictError(
            f"change {change_id} is {found.state} already", hint="`prony watch-regressions` lists the open changes"
        )
    said = words.model_copy(update={"who": who, "at": at})
    return _decide(connection, found, ChangeState.ACKNOWLEDGED, {"acknowledgement": said})


def confirm(
    connection: Connection, change_id: str, pairs: Sequence[tuple[float, float]], *, is_last: bool = False
) -> Change | None:
    """Judge a change by runs of both versions side by side, (old, new) each; None where it is open: run more pairs.

    `analyse.history.confirming` says how many pairs, at first and then; `is_last`: there will be no more.
    """
    import numpy as np

    from prony.analyse.history.confirmation import judge_pairs
    from prony.analyse.history.detect import Rules
    from prony.stats.shift import paired_ratio

    found = _still_open(connection, change_id)
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    _check_positive(values, "a pair is two numbers above zero")
    differences = np.log(values[:, 1] / values[:, 0]) * (-1 if found.better == "higher" else 1)
    is_worse = (found.effect > 0) == (found.better != "higher")
    said = judge_pairs(differences, Rules(), worse=is_worse, is_last=is_last)
    agree = int(np.count_nonzero(differences > 0 if is_worse else differences < 0))
    size = _size(paired_ratio(values[:, 0], values[:, 1]))
    told = f"side by side: {agree} of {len(differences)} pairs agree, {size}, {said}"
    return _record_answer(connection, found, said, told)


@dataclass(frozen=True)
class RepeatedRun:
    """One result of a metric, and the canaries of the machine beside it."""

    value: float
    canary: dict[str, float]


@dataclass(frozen=True)
class EarlierRuns:
    """All results of a machine before a change; `borders`: where real changes began."""

    runs: tuple[RepeatedRun, ...]
    borders: tuple[int, ...] = ()


def confirm_again(
    connection: Connection, change_id: str, before: Sequence[RepeatedRun], after: Sequence[RepeatedRun], *,
    earlier: EarlierRuns, is_last: bool = False,
) -> tuple[str, Change | None]:  # fmt: skip
    """Judge a change by running the same job again, where nothing can be set back: not both versions side by side.

    `before` are results of the old level, `earlier` also those of levels before it. Return the answer of
    `judge_repeats`, and the change where that decides it.
    """
    import numpy as np

    from prony.analyse.history.confirmation import judge_repeats
    from prony.analyse.history.detect import Rules
    from prony.analyse.history.machine_record import record_before
    from prony.stats.shift import ratio

    found = _still_open(connection, change_id)
    sides = [np.array([one.value for one in runs], dtype=np.float64) for runs in (before, after)]
    for values in sides:
        _check_positive(values, "results are numbers above zero")
    # The direction was said before these were run: it got worse.
    old, new, known = (_repeats(runs, found) for runs in (before, after, earlier.runs))
    record = record_before(known.values, known.speeds, earlier.borders)
    said = judge_repeats(old, new, Rules(), record=record, is_last=is_last)
    runs = f"{new.values.size} runs of the same job against {old.values.size} before the change"
    told = f"repeated: {runs}, not side by side, {_size(ratio(sides[0], sides[1]))}, {_ANSWERS[said]}"
    if said in ("confirmed", "rejected"):
        return said, _record_answer(connection, found, said, told)
    if said != "open":
        note_change(connection, change_id, told)
    return said, None


def _repeats(runs: Sequence[RepeatedRun], change: Change) -> Repeats:
    import numpy as np

    from prony.analyse.history.confirmation import Repeats
    from prony.analyse.history.level_track import canary_columns

    turned = np.log([one.value for one in runs]) * (-1 if change.better == "higher" else 1)
    is_speed = is_time_or_rate(change.unit)
    return Repeats(turned, canary_columns([one.canary if is_speed else {} for one in runs]))


def confirm_once(connection: Connection, change_id: str, before: Sequence[float], again: float) -> Change | None:
    """Judge one suspicious result by one more: a spike is rejected; None where it may be a change."""
    import numpy as np

    from prony.analyse.history.confirmation import was_spike

    found = _still_open(connection, change_id)
    values = np.array((*before, again), dtype=np.float64)
    _check_positive(values, "results are numbers above zero")
    turned = np.log(values) * (-1 if found.better == "higher" else 1)
    if not was_spike(turned[:-1], float(turned[-1])):
        return None
    return _record_answer(
        connection, found, "rejected", "repeated: one more run was at the old level, so this was a spike"
    )


def _size(found: Shift) -> str:
    """Say how many times as much it is, as it is said of the change itself."""
    low, high = (None if end is None else end - 1 for end in (found.low, found.high))
    return effect_text(found.value - 1, low, high)


def _still_open(connection: Connection, change_id: str) -> Change:
    found = rows.change(connection, change_id)
    if found.state not in OPEN:
        raise ConflictError(
            f"change {change_id} is {found.state} already", hint="`prony watch-regressions` lists the open changes"
        )
    return found


def _check_positive(values: Any, said: str) -> None:
    import numpy as np

    if not values.size or not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise InputError(said, hint="leave out failed runs")


def _record_answer(connection: Connection, found: Change, said: str, told: str) -> Change | None:
    if said == "open":
        return None
    state = ChangeState.CONFIRMED if said == "confirmed" else ChangeState.REJECTED
    return _decide(connection, found, state, {"path": (*found.path, told)})


def note_change(connection: Connection, change_id: str, told: str) -> Change | None:
    """Add to how a change was found; None where it is gone, or says so already."""
    try:
        found = rows.change(connection, change_id)
    except NotFoundError:
        return None
    if told in found.path:
        return None
    noted = found.model_copy(update={"path": (*found.path, told)})
    rows.keep_change(connection, noted)
    return noted


def _decide(connection: Connection, found: Change, state: ChangeState, more: dict[str, Any]) -> Change:
    from prony.analyse.history.changes_found import restate_change
    from prony.analyse.history.level_track import select_numbers

    judged = select_numbers(rows.points(connection, found.series_id), found.metric, found.better).points
    last = max(judged, key=lambda one: one.measured_at).job_id if judged else None
    changed = restate_change(found.model_copy(update={"state": state, "decided_after": last} | more))
    rows.keep_change(connection, changed)
    rows.wake(connection, found.series_id)
    return changed
