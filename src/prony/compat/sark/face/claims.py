"""Guess which worker has taken which job, by who asked for it and who says to be busy.

A Dumont takes a job's id from a list without a word, asks for the job without its name, and then says under its name
that it is busy. This joins the two. A wrong guess does no harm: results name their job, and a lease that brings none
ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    job_id: str
    address: str
    at: float


class Claims:
    """What this process heard; nothing of it is needed after a restart. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}
        self._busy: Counter[str] = Counter()

    def note_request(self, job_id: str, address: str, now: float) -> None:
        self._questions[job_id] = Question(job_id, address, now)

    def forget(self, job_id: str) -> None:
        self._questions.pop(job_id, None)

    def expire(self, before: float) -> None:
        self._questions = {one.job_id: one for one in self._questions.values() if one.at >= before}

    def candidates(self, fitting: Collection[str], address: str) -> list[str]:
        """Return the jobs that a worker may have taken, the likeliest first: asked for from its address, and last."""
        found = [one for one in self._questions.values() if one.job_id in fitting]
        return [one.job_id for one in sorted(found, key=lambda one: (one.address != address, -one.at))]

    def latest(self, most: int) -> list[str]:
        """Return the jobs that were asked for last."""
        found = sorted(self._questions.values(), key=lambda one: -one.at)
        return [one.job_id for one in found[:most]]

    def begin(self, worker_id: str) -> None:
        """It says to be busy. Two processes may share one id, so it is counted."""
        self._busy[worker_id] += 1

    def end(self, worker_id: str) -> bool:
        """It says to be free; are all that were busy under its name?"""
        self._busy[worker_id] = max(0, self._busy[worker_id] - 1)
        return not self._busy[worker_id]

    def reborn(self, worker_id: str) -> None:
        self._busy.pop(worker_id, None)
