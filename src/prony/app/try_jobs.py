"""Run each job once, unmeasured, before anything is measured or kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import PronyError
from prony.ports.models import policy_of
from prony.ports.workload import kind_of
from prony.runner.context import RunContext
from prony.runner.environment import look_around

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.model.assumption import Assumption
    from prony.model.job import Job


def try_jobs(bench: Bench, jobs: Sequence[Job], base: Path) -> tuple[list[Assumption], list[tuple[Job, PronyError]]]:
    """Run each job once; return what had to be chosen for them, each once, and which failed with what."""
    context = _context(bench, base)
    found: dict[str, Assumption] = {}
    failures: list[tuple[Job, PronyError]] = []
    for job in jobs:
        try:
            found |= {one.what: one for one in kind_of(job.workload).prepare.try_once(job, context)}
        except PronyError as exc:
            failures.append((job, exc))
    return list(found.values()), failures


def _context(bench: Bench, base: Path) -> RunContext:
    return RunContext(
        cache=bench.home.cache,
        engines=bench.home.engines,
        base=base,
        clock=bench.clock,
        environment=lambda: look_around(bench.home.root, None, bench.home.cache),
        emit=lambda _: None,
        stop_asked=lambda: False,
        policy=policy_of(os.environ),
    )
