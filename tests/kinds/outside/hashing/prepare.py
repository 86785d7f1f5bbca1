"""Check a job that hashes."""

from __future__ import annotations

import hashlib

from prony.errors import InputError
from prony.model.job import Job
from prony.ports.workload import Prepare

from .schema import HashingWorkload


class HashingPrepare(Prepare):
    """Before anything is hashed."""

    def check(self, job: Job) -> None:
        algorithm = job.work(HashingWorkload).algorithm
        if algorithm not in hashlib.algorithms_available:
            raise InputError(f"no algorithm is called {algorithm!r}", code="recipe")


PART = HashingPrepare()
