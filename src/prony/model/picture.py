"""What is drawn of one result: samples put into bins and buckets, so that a million of them travel as a few hundred
numbers. No number here is quoted: those with intervals are the estimates beside."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun
from prony.model.estimate import Estimate
from prony.model.metric import Better


class Drawn(Noun):
    """One run of a job; `excluded` says why its numbers do not count, empty where they do."""

    repetition: int
    is_used: bool
    excluded: str = ""


class DrawnRun(Drawn):
    """The samples of one run: how many lie in each bin, its lowest, median and highest."""

    count: int
    counts: tuple[int, ...]
    low: float
    median: float
    high: float


class SharePoint(Noun):
    """A share of the samples and the value that they do not exceed: the median over the runs that count, between the
    lowest and the highest of them. Runs are never pooled."""

    share: float
    value: float
    low: float
    high: float


class Distribution(Noun):
    """`edges` has one number more than `counts`; `metrics` are those that may be asked for."""

    job_id: str
    title: str
    metric: str
    unit: str
    better: Better
    metrics: tuple[str, ...]
    count: int
    is_log: bool
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    ecdf: tuple[SharePoint, ...]
    runs: tuple[DrawnRun, ...]
    estimates: dict[str, Estimate] = {}


class Bucket(Noun):
    """A stretch of time: what succeeded and failed in it, and how long the successes took; None where there is none."""

    at_s: float
    count: int
    failed: int = 0
    low: float | None = None
    median: float | None = None
    high: float | None = None


class TimelineRun(Drawn):
    """Seconds count from the run's first sample; from `begin_s` to `end_s` is the part that counts."""

    begin_s: float
    end_s: float
    buckets: tuple[Bucket, ...]


class Timeline(Noun):
    """The runs of a job in time, in buckets of `width_s`."""

    job_id: str
    title: str
    metric: str
    unit: str
    width_s: float
    runs: tuple[TimelineRun, ...]


class Start(Drawn):
    """One fresh process: how long it loaded, its first inference, and the median of its warm ones, in milliseconds."""

    kind: Literal["measure", "load"]
    load: float | None = None
    first: float | None = None
    warm: float | None = None


class Starts(Noun):
    """Cold against warm."""

    job_id: str
    title: str
    unit: str = "ms"
    runs: tuple[Start, ...]
    estimates: dict[str, Estimate] = {}


class LoadRunSeries(Drawn):
    """One run of a load, second by second. `at_s` is where each second ends, from the run's first request on.

    `rate_per_s` are replies, failed ones with them. Latencies are of good replies; None where there was none.
    """

    at_s: tuple[float, ...]
    rate_per_s: tuple[float, ...]
    failed_per_s: tuple[float, ...]
    in_flight: tuple[float, ...]
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]


class LoadSeries(Noun):
    """A load second by second. `source` is `live` while only reports of the running load are there, then `samples`."""

    job_id: str
    title: str
    source: Literal["live", "samples"]
    runs: tuple[LoadRunSeries, ...]


class CounterLine(Noun):
    """One counter: its values over time, None between two runs."""

    probe: str
    counter: str
    unit: str
    at_s: tuple[float, ...]
    value: tuple[float | None, ...]


class StepLine(Noun):
    """What was reported step by step under one name, set of labels and rank in one run; `total` is how many numbers
    there were, of which `steps` and `values` are all or an even choice."""

    metric: str
    unit: str
    labels: dict[str, str]
    rank: int | None
    repetition: int
    steps: tuple[float, ...]
    values: tuple[float, ...]
    total: int

    @property
    def series(self) -> str:
        """What tells it from other lines of its metric; runs are drawn alike."""
        named = [f"{key}={value}" for key, value in self.labels.items()]
        return ", ".join(named + ([] if self.rank is None else [f"rank {self.rank}"]))


class StepLines(Noun):
    """Metrics of a job over its steps."""

    job_id: str
    title: str
    lines: tuple[StepLine, ...]


class Stretch(Noun):
    """When the samples of one repetition were taken."""

    repetition: int
    begin_s: float
    end_s: float


class Counters(Noun):
    """What the machine did beside the runs, one run after the other; `measured` is where samples were taken."""

    job_id: str
    title: str
    series: tuple[CounterLine, ...]
    measured: tuple[Stretch, ...]
