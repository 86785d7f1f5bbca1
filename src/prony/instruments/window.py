"""Find the steady part of a run of requests: the measurement window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prony.instruments.per_second import quantiles
from prony.model.load import Load
from prony.model.result import Repetition
from prony.stats.steady import FEWEST, steady_from

Array = np.ndarray[Any, np.dtype[Any]]

# Waiting requests are alike: in short blocks a queue that is quite steady looks like one that drifts. With a hundred, a
# simulated queue at 70 % of its capacity is steady in each of 40 runs, and one at 110 % in one of them.
_MOST_BLOCKS = 100
# A block holds so many requests on average. One in which completions are counted lasts so many median latencies: users
# who began together are answered in waves, and blocks that hold no whole wave would see nothing else.
_LEAST_IN_BLOCK = 10
_WAVES = 2
# Beyond this share of the sending time nothing is called a warm-up.
_LATEST = 0.7


@dataclass(frozen=True)
class Window:
    """From `begin_ns` to `end_ns`; `steady` is None where nobody looked for a steady state or nobody could."""

    begin_ns: int
    end_ns: int
    steady: bool | None = None

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def pair(self) -> tuple[int, int]:
        return self.begin_ns, self.end_ns


@dataclass(frozen=True)
class Sent:
    """One run as columns; `sending_ns` is from when until when requests were sent, where that is known, and `users`
    how many there were of a load that does not say so itself (a probe of a search)."""

    begin_ns: Array
    end_ns: Array
    succeeded: Array
    sending_ns: tuple[int, int] | None = None
    users: int | None = None


def is_open(load: Load) -> bool:
    """Do requests come whether or not the last ones are answered, so that latency begins when one is due?"""
    if load.way == "stages":
        return any(stage.rate is not None for stage in load.stages or ())
    if load.way == "mlperf":
        return load.mlperf is not None and load.mlperf.scenario == "server"
    if load.way == "search":
        return load.search is not None and load.search.over == "rate"
    return load.way in ("open", "replay")


def find_window(sent: Sent, load: Load) -> Window:
    """Return the part that counts: from the steady state on (at least after every user's first request) until nothing
    more is sent. MLPerf's scenarios count everything, and stages and traces change on purpose: they have none."""
    begin, end = _sending(sent)
    if load.way == "mlperf":
        return Window(begin, max(end, int(sent.end_ns.max(initial=end))))
    if load.warmup == "none" or load.way in ("stages", "replay"):
        return Window(begin, end)
    if isinstance(load.warmup, int):
        return Window(min(begin + load.warmup, end), end)
    after = begin if is_open(load) else _first_round(sent, sent.users or load.users.concurrency)
    after = max(after, begin + (load.users.stagger or 0) * (load.users.concurrency - 1))
    judged = sent.begin_ns.size >= FEWEST * _LEAST_IN_BLOCK
    if after > begin + _LATEST * (end - begin):
        return Window(begin, end, steady=False if judged else None)
    settled = _find_steady(sent, begin, end)
    if settled is None or max(settled, after) > begin + _LATEST * (end - begin):
        return Window(after, end, steady=False)
    return Window(max(settled, after), end, steady=True if judged else None)


def window_of(begins: Array, ends: Array, succeeded: Array, load: Load, repetition: Repetition | None) -> Window:
    """Return the window of a recorded run: requests were sent during its measured phase, at its own level."""
    phase = repetition.phases.get("measure") if repetition is not None else None
    level = repetition.level if repetition is not None else None
    sending = None if phase is None else (phase.begin_ns, phase.end_ns)
    return find_window(Sent(begins, ends, succeeded, sending, None if level is None else round(level)), load)


def _sending(sent: Sent) -> tuple[int, int]:
    if sent.sending_ns is not None:
        return sent.sending_ns
    if not sent.begin_ns.size:
        return 0, 0
    return int(sent.begin_ns.min()), int(sent.begin_ns.max()) + 1


def _first_round(sent: Sent, users: int) -> int:
    """Return when the first request of the last user was over: the first so many sent are one of each."""
    first = np.argsort(sent.begin_ns, kind="stable")[:users]
    return int(sent.end_ns[first].max(initial=_sending(sent)[0]))


def _find_steady(sent: Sent, begin: int, end: int) -> int | None:
    """Return from when both the completions and the latencies are steady; None where one of them never is."""
    good = sent.succeeded & (sent.begin_ns >= begin) & (sent.begin_ns < end)
    latencies = (sent.end_ns - sent.begin_ns)[good]
    most = min(latencies.size // _LEAST_IN_BLOCK, _MOST_BLOCKS)
    if most < FEWEST or end <= begin:
        return begin
    waves = (end - begin) / max(_WAVES * float(np.median(latencies)), 1.0)
    ended = sent.end_ns[sent.succeeded & (sent.end_ns >= begin) & (sent.end_ns < end)]
    starts = [
        _steady_at(_completions(ended - begin, end - begin, max(1, min(most, int(waves)))), end - begin),
        _steady_at(_medians(sent.begin_ns[good] - begin, latencies, end - begin, most), end - begin),
    ]
    known = [start for start in starts if start is not None]
    return begin + max(known) if len(known) == len(starts) else None


def _steady_at(series: Array, length_ns: int) -> int | None:
    start = steady_from(series)
    return None if start is None else start * length_ns // series.size


def _completions(ends: Array, length_ns: int, count: int) -> Array:
    blocks: Array = np.bincount(_blocks(ends, length_ns, count), minlength=count).astype(np.float64)
    return blocks


def _medians(begins: Array, latencies: Array, length_ns: int, count: int) -> Array:
    return _fill_gaps(quantiles(_blocks(begins, length_ns, count), latencies, 0.5, count))


def _blocks(at: Array, length_ns: int, count: int) -> Array:
    blocks: Array = (at * (count / length_ns)).astype(np.int64).clip(0, count - 1)
    return blocks


def _fill_gaps(values: Array) -> Array:
    """Return the series with each gap at the level before it; a stretch in which nothing began has no latency."""
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return np.zeros_like(values)
    places = np.maximum(np.searchsorted(known, np.arange(values.size), side="right") - 1, 0)
    filled: Array = values[known[places]]
    return filled
