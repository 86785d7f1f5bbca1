"""Run a whole load with a driver by client processes, for tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from prony.load.generator import LoadPlan, generate
from prony.load.outcome import LoadOutcome
from prony.load.schedule import plan
from prony.model.load import Load
from prony.ports.driver import Cause, Digest, Driver, Endpoint, Prepared, Wants

USERS, COUNT = 8, 400


def loaded(
    driver: Driver, endpoint: Endpoint, options: dict[str, Any], scratch: Path, count: int = COUNT
) -> tuple[Prepared, LoadOutcome]:
    """Prepare, and send so many requests by `USERS` users in two processes."""
    load = Load.model_validate({"closed": {"concurrency": USERS}, "requests": count})
    wants = Wants(endpoint, driver.Options(**options), seed=3, count=count, scratch=scratch)
    prepared = driver.prepare(wants)
    ground = LoadPlan(prepared, endpoint, plan(load, base=scratch), load, scratch / "load", processes=2)
    return prepared, generate(ground)


def causes(outcome: LoadOutcome) -> Counter[str]:
    return Counter(Cause(number).name for number in outcome.records["cause"].tolist())


def digested(driver: Driver, prepared: Prepared, outcome: LoadOutcome) -> list[Digest]:
    """Return what the driver says of each reply that was kept."""
    which = outcome.records["request"].tolist()
    return [driver.digest(prepared.requests[which[row]], reply) for row, reply in outcome.replies()]
