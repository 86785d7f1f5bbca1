"""Stores with a history in them, written as runs write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

import numpy as np

from prony.model.estimate import Grade
from prony.model.git import Git
from prony.model.job import Job
from prony.model.metric import HEADLINE
from prony.store.store import Store

from .nouns import NOW, experiment, jobs, summary, write_folder


def numbers(count: int = 36, *, change: int | None = None, size: float = 0.08, seed: int = 1) -> list[float]:
    """Return what runs of one benchmark gave, with a change from one of them on."""
    values = 2.5 * (1 + np.random.default_rng(seed).normal(0, 0.01, count))
    if change is not None:
        values[change:] *= 1 + size
    return [float(value) for value in values]


def record(
    store: Store,
    place: int,
    value: float,
    *,
    grade: Grade = Grade.VALID,
    batch: int = 1,
    canary_ms: float | None = None,
    watch: Mapping[str, float] = MappingProxyType({}),
    watched: Sequence[str] | None = None,
    git: Git | None = None,
) -> Job:
    """Record one result, measured `place` minutes after the beginning; `watch`: other metrics with their values.

    `watched`: how the recipe names them, where it is not by their whole keys.
    """
    made = experiment(f"run{place:04d}b{batch}", minutes=place, job_count=1, git=git)
    job = jobs(made.id, (batch,))[0].model_copy(
        update={"watch": tuple(watch if watched is None else watched), "git": git}
    )
    store.save_experiment(made, [job])
    folder = write_folder(store.home.result_folder(made.id, job.id), job, started_at=NOW + timedelta(minutes=place))
    made_of = summary(job, median_ms=value, grade=grade)
    canary = {} if canary_ms is None else {"compute_ms": canary_ms}
    middle = made_of.estimates["inference_ms.p50"]
    also = {key: middle.model_copy(update={"value": value}) for key, value in watch.items()}
    runs = {HEADLINE: tuple(value * share for share in (0.999, 0.9995, 1, 1.0005, 1.001))}
    told = {"canary": canary, "estimates": made_of.estimates | also, "runs": runs}
    store.record_result(folder, made_of.model_copy(update=told))
    return job


def fill(
    store: Store, values: Sequence[float], order: Sequence[int] | None = None, canaries: Sequence[float] = ()
) -> list[Job]:
    """Record many, in the order in which they were measured or in another."""
    return [
        record(store, place, values[place], canary_ms=canaries[place] if canaries else None)
        for place in (order or range(len(values)))
    ]
