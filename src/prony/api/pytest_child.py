"""The fixture in a fresh process of pytest: time each function and tell its durations.

It imports numpy and the standard library only, so that nothing of Prony runs beside what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prony.api.call_function import emit_durations
from prony.api.time_function import time_function
from prony.errors import InputError


class ChildBench:
    """Called with a function and its arguments, it tells the durations under the metric of its test."""

    def __init__(self, metric: str, time_ns: int) -> None:
        self._metric, self._time_ns = metric, time_ns

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Time the function and return what it returned."""
        times = time_function(partial(function, *args, **kwargs), runs=None, time_ns=self._time_ns)
        emit_durations(self._metric, times)
        return times.first_result


def metrics_by_test(nodeids: Sequence[str]) -> Mapping[str, str]:
    """Return the name of its metric for each test."""
    return {nodeid: metric for metric, nodeid in name_metrics(nodeids).items()}


def name_metrics(nodeids: Sequence[str]) -> dict[str, str]:
    """Return each test by the name of its metric: that of the function, with the file before it where two are alike.

    Raises:
        InputError: Two tests have the same name without its punctuation.
    """
    short = {nodeid: _metric_of(nodeid.rpartition("::")[2]) for nodeid in nodeids}
    alike = {name for name in short.values() if list(short.values()).count(name) > 1}
    found = {(_metric_of(nodeid) if name in alike else name): nodeid for nodeid, name in short.items()}
    if len(found) < len(short):
        lost = next(nodeid for nodeid in nodeids if nodeid not in found.values())
        raise InputError(
            f"{lost}: another test has the same name without its punctuation",
            hint="rename the test, or the ids of its parameters",
        )
    return found


def _metric_of(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text.replace(".py", "")).strip("_") + "_ms"
