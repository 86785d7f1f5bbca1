"""Progress of the runner as JSON lines: what a face shows while a job runs."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun


class Event(Noun):
    """`started` and `finished` speak of a job, `repetition` and `phase` of one fresh process in it."""

    kind: Literal["prepare", "started", "repetition", "phase", "finished"]
    job_id: str
    done: int = 0
    total: int = 0
    phase: str = ""
    state: str = ""
    message: str = ""
