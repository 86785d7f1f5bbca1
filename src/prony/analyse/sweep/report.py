"""Build the report of a sweep from the jobs of its load levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prony.analyse.bottleneck import bottleneck_of
from prony.analyse.sweep.claims import GAIN_SHARE, THROUGHPUT, knee_claim, limit_claim, of_the_client, slo_claim
from prony.analyse.sweep.curves import Group, LoadedJob, group_by_level
from prony.analyse.sweep.limits import checks, goodput
from prony.model.sweep import Curve, Level, SweepReport


def sweep_report(jobs: Sequence[LoadedJob], slo: Mapping[str, float] | None = None) -> SweepReport:
    """Say what the levels show; `slo` stands in the place of the limits that the recipes set, which all must share."""
    limits = dict(slo) if slo is not None else _shared_slo(jobs)
    curves = tuple(_curve(title, noun, groups, limits) for title, noun, groups in group_by_level(jobs))
    experiments = tuple(dict.fromkeys(job.entry.job.experiment_id for job in jobs))
    return SweepReport(experiments=experiments, slo=limits, gain_share=GAIN_SHARE, curves=curves)


def _shared_slo(jobs: Sequence[LoadedJob]) -> dict[str, float]:
    """Return the limits that every job has alike; one that only some have judges nothing here."""
    found = dict(jobs[0].entry.job.load.slo) if jobs else {}
    return {key: limit for key, limit in found.items() if all(job.entry.job.load.slo.get(key) == limit for job in jobs)}


def _curve(title: str, noun: str, groups: Sequence[Group], slo: Mapping[str, float]) -> Curve:
    levels = tuple(_level(group, slo) for group in groups)
    knee, _ = knee_claim(groups, noun)
    whose = of_the_client(knee, levels, noun)
    knee, limit = (one.model_copy(update={"text": one.text + whose}) for one in (knee, limit_claim(groups, knee, noun)))
    return Curve(
        title=title, noun=noun, levels=levels, knee=knee, limit=limit,
        slo=slo_claim(levels, slo, noun),
    )  # fmt: skip


def _level(group: Group, slo: Mapping[str, float]) -> Level:
    excluded = "" if group.counting_jobs else group.jobs[0].exclusion
    ended_early = max((job.entry.ended_early for job in group.counting_jobs or group.jobs), default="")
    return Level(
        load=group.level, jobs=tuple(job.entry.job.id for job in group.jobs),
        throughput=group.estimate(THROUGHPUT), goodput=goodput(group, slo),
        p50=group.estimate("e2e_ms.p50"), p99=group.estimate("e2e_ms.p99"),
        errors=group.jobs[0].entry.summary.estimates.get("error_rate.mean"),
        checks=checks(group, slo), grade=group.grade, ended_early=ended_early, excluded=excluded,
        bottleneck=bottleneck_of([(job.entry, job.telemetry) for job in group.counting_jobs or group.jobs]),
    )  # fmt: skip
