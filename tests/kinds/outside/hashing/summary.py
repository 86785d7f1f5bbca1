"""Make numbers of what was hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prony.analyse.estimates import single_estimates
from prony.model.device import Environment
from prony.model.estimate import Grade, Summary, Verdict
from prony.model.job import Job
from prony.model.metric import Metric
from prony.model.result import Result
from prony.ports.workload import Summarise
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

METRIC = Metric(name="hash_ms", unit="ms", better="lower", meaning="wall time of one hash")


class HashingSummary(Summarise):
    """Results to numbers."""

    figures = ("distribution", "lines")

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        del environment
        taken_ms = ((samples["end_ns"] - samples["begin_ns"]) / 1e6).to_list()
        figures = single_estimates(METRIC.name, taken_ms, "runs", full=True, unit=METRIC.unit)
        return Summary(
            job_id=job.id, title=job.title, cell=job.cell, estimates=figures.estimates, runs=figures.runs,
            metrics={METRIC.name: METRIC}, headline="hash_ms.p50",
            used=tuple(one.index for one in result.repetitions), verdict=Verdict(grade=Grade.VALID),
        )  # fmt: skip

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job, summary
        return (METRIC.name,)

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        del job, result, metric
        taken_ms = ((samples["end_ns"] - samples["begin_ns"]) / 1e6).to_numpy()
        return {int(index): taken_ms[place : place + 1] for place, index in enumerate(samples["repetition"])}


PART = HashingSummary()
