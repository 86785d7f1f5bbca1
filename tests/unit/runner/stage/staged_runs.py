"""Run script workloads with the real runner in a test's folder, and read their results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.kinds.script.prepare import anchored_script
from prony.kinds.script.schema import ScriptWorkload
from prony.model.event import Event
from prony.model.job import Job
from prony.model.recipe import Limits, Measure
from prony.model.result import Failure, Result
from prony.ports.clock import SystemClock
from prony.ports.models import ModelPolicy
from prony.recipe import loads
from prony.runner.context import RunContext
from prony.runner.environment import look_around
from prony.runner.jobs import run_jobs


@dataclass
class Runs:
    """`base` is the folder of the recipe; what it runs is told as it is told by `run_jobs`."""

    base: Path
    policy: ModelPolicy = field(default_factory=ModelPolicy)
    stop_asked: Callable[[], bool] = lambda: False
    events: list[Event] = field(default_factory=list)

    def write(self, name: str, text: str) -> Path:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *, repeats: int = 1, timeout: str = "60s", **workload: Any) -> Result:
        given = {"kind": "script", "command": None} | workload
        job = Job(
            id="x-001", experiment_id="x", name="x", cell={}, seed=1,
            workload=ScriptWorkload.model_validate_json(json.dumps(given)),
            measure=Measure(repeats=repeats, warmup=0),
            limits=Limits.model_validate({"timeout": timeout}),
        )  # fmt: skip
        return self.run_job(job)

    def run_descriptor(self, text: str, *overrides: str) -> Result:
        """Run a Benchmark AI descriptor that lies in the folder, without a container."""
        (job,) = loads(text, "toml", "descriptor.toml", ("workload.container=false", *overrides)).jobs("x")
        return self.run_job(anchored_script(job, self.base))

    def run_job(self, job: Job) -> Result:
        around = RunContext(
            cache=self.base / "cache", engines=self.base / "engines", base=self.base, clock=SystemClock(),
            environment=lambda: look_around(self.base), emit=self.events.append,
            stop_asked=self.stop_asked, policy=self.policy,
        )  # fmt: skip
        self.count = getattr(self, "count", 0) + 1
        self.folder = self.base / f"result-{self.count}"
        return run_jobs([job], [self.folder], around)[0]

    def told(self) -> dict[str, list[float]]:
        """Return what the last job told, by name, in the order in which it came."""
        import polars as pl

        rows = pl.read_parquet(self.folder / "samples.parquet")
        names: list[str] = rows["name"].to_list()
        return {name: rows.filter(pl.col("name") == name)["value"].to_list() for name in dict.fromkeys(names)}

    def log(self, name: str) -> str:
        return (self.folder / "logs" / name).read_text()


def why(result: Result) -> Failure:
    assert result.failure is not None
    return result.failure


def notes(result: Result) -> str:
    assert result.script is not None
    return "\n".join(result.script.notes)
