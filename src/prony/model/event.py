"""Progress of the runner as JSON lines: what a face shows while a job runs."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun


class Live(Noun):
    """A load while it runs, or a language model on an engine, whose passes or answers are counted as requests.

    Rates and quantiles are of the last second, or since the last time; `left_s` is None where a count decides; `run`
    counts from 0. `tokens_per_s` is of a model on an engine, while it is timed: tokens written, or read where it writes
    none.
    """

    run: int = 0
    elapsed_s: float
    left_s: float | None = None
    sent: int
    done: int
    failed: int
    in_flight: int
    rate_per_s: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    tokens_per_s: float | None = None


class Event(Noun):
    """`started` and `finished` speak of a job, `repetition` and `phase` of one fresh process in it, `load` of how a
    load goes just now. `meet` asks for the others of a gang: `phase` names the meeting, `message` is told there; only
    the runner's own agent hears it. `printed` is lines of a job at a target: `phase` names the file, `message` has the
    lines."""

    kind: Literal["prepare", "started", "repetition", "phase", "load", "meet", "printed", "finished"]
    job_id: str
    done: int = 0
    total: int = 0
    phase: str = ""
    state: str = ""
    message: str = ""
    live: Live | None = None


class Changed(Noun):
    """What is no longer as it was, by the ids of those that are told apart; `topics` are other nouns as a whole."""

    experiments: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
