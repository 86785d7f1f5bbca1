"""How load shall come: what a person writes under `load`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from prony.model.base import Noun
from prony.model.metric import METRICS, STATISTICS
from prony.model.quantity import DurationNs, Share, duration_text

Arrivals = Literal["constant", "poisson", "gamma"]
Scenario = Literal["single-stream", "multi-stream", "server", "offline"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# What a limit of each request may be of, without a statistic.
REQUEST_LIMITS = ("e2e_ms", "service_ms", "ttfb_ms", "ttft_ms", "ttft_content_ms", "tpot_ms", "itl_ms")
# What a search may hold: a gap is no single number of a request, so its percentiles are not shares of requests.
SEARCHED = tuple(metric for metric in REQUEST_LIMITS if metric != "itl_ms")
MOST_REQUESTS = 2 * 10**9
WAYS = ("closed", "open", "stages", "replay", "mlperf", "search")


def _lasting(default_ns: int, description: str) -> Any:
    """Return the field of a duration whose default reads in the schema as a person would write it."""
    shown: dict[str, Any] = {"default": duration_text(default_ns)}
    return Field(default=default_ns, description=description, json_schema_extra=shown)


class Closed(Noun):
    """So many users, each of whom sends the next request when the last one is answered."""

    concurrency: int = Field(default=1, ge=1, le=100_000, description="requests in flight")
    think: DurationNs | None = Field(default=None, description="how long a user waits before the next request")
    requests: int | None = Field(
        default=None, ge=1, le=100_000_000, description="how many requests each user sends; then that user is done"
    )
    stagger: DurationNs | None = Field(
        default=None, description="time between the start of one user and of the next; default: all start together"
    )

    @model_validator(mode="after")
    def _can_be_numbered(self) -> Self:
        if self.requests is not None and self.requests * self.concurrency > MOST_REQUESTS:
            raise ValueError(f"{self.concurrency} users with {self.requests} requests each are more than 2 billion")
        return self


class Open(Noun):
    """Requests that come whether or not the last ones are answered."""

    rate: Positive = Field(description="requests a second")
    arrivals: Arrivals = Field(default="poisson", description="how the gaps between requests are spread")
    burstiness: Positive = Field(
        default=1.0, description="for gamma arrivals: shape of the gaps; 1 is poisson, less gives bursts"
    )
    most_in_flight: int | None = Field(
        default=None, ge=1, description="requests beyond this many are counted as dropped; default: no limit"
    )


class Stage(Noun):
    """One stretch of a load; exactly one of `rate` and `concurrency`."""

    duration: DurationNs = Field(description="how long it lasts")
    rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="requests a second"
    )
    concurrency: int | None = Field(default=None, ge=1, le=100_000, description="requests in flight")
    ramp: bool = Field(default=False, description="change linearly from the level of the stage before")
    arrivals: Arrivals = Field(default="poisson", description="how the gaps between requests are spread")
    burstiness: Positive = Field(default=1.0, description="for gamma arrivals: shape of the gaps, as in `open`")

    @model_validator(mode="after")
    def _one_level(self) -> Self:
        if (self.rate is None) == (self.concurrency is None):
            raise ValueError("choose exactly one of rate and concurrency")
        return self


class Replay(Noun):
    """A trace: when each request came, and how long it and its answer were."""

    file: str = Field(min_length=1, description="the trace: a path", json_schema_extra={"path": True})
    layout: Literal["auto", "jsonl", "mooncake", "burstgpt"] = Field(
        default="auto", description="its columns; auto: detected from its first line"
    )
    speed: Positive = Field(default=1.0, description="2 replays it in half the time")
    requests: int | None = Field(default=None, ge=1, description="only the first so many requests")


class Mlperf(Noun):
    """One of MLPerf's four scenarios with its rules; a shorter test is no submission, and is told to be none."""

    scenario: Scenario = Field(description="how queries come")
    rate: Positive | None = Field(default=None, description="server: queries a second; offline: expected samples")
    samples_per_query: int | None = Field(default=None, ge=1, description="default: 8 for multi-stream, else 1")
    min_duration: DurationNs = _lasting(600 * 10**9, "the shortest time from the first query to the last")
    min_queries: int | None = Field(default=None, ge=1, description="default: the scenario's own")
    percentile: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="default: 0.9 for single-stream, 0.99 for the others"
    )
    most_in_flight: int | None = Field(
        default=None, ge=1, le=100_000, description="offline: samples in flight at once; default: 1024"
    )

    @model_validator(mode="after")
    def _has_rate(self) -> Self:
        if self.scenario == "server" and self.rate is None:
            raise ValueError("the server scenario needs a rate")
        if self.scenario != "offline" and self.most_in_flight is not None:
            raise ValueError("only the offline scenario limits what is in flight")
        return self


class Search(Noun):
    """The highest load that holds the SLO: doubled until it does not, then halved between."""

    over: Literal["concurrency", "rate"] = Field(default="concurrency", description="what is raised")
    low: Positive = Field(default=1.0, description="the first level")
    high: Positive = Field(default=4096.0, description="the last level, if the SLO holds until there")
    probe: DurationNs = _lasting(10 * 10**9, "how long each load is held")
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="stop when the limits lie this close together, as a share"
    )
    arrivals: Arrivals = Field(default="poisson", description="for a rate: how the gaps are spread")


class Clients(Noun):
    """Who sends: processes, on one machine or on several, which share one schedule and one start."""

    agents: int = Field(
        default=1, ge=1, le=256, description="how many agents of a server send it together, each from its own device"
    )
    processes: int | None = Field(
        default=None, ge=1, le=256, description="client processes on each; default: as many as the load needs"
    )
    on: str | None = Field(
        default=None,
        min_length=1,
        description="target whose nodes send it; the service then has a node of place.on for itself",
    )


class Seeds(Noun):
    """One for each thing that is left to chance, so that one can change while the others stay."""

    arrivals: int = Field(default=1, ge=0, description="for the times at which requests are due")
    prompts: int = Field(default=2, ge=0, description="for the prompts")
    lengths: int = Field(default=3, ge=0, description="for the lengths of prompts")


def _check_searched(slo: Mapping[str, float]) -> None:
    """Refuse what no probe of a search could be judged by."""
    if not slo:
        raise ValueError("search needs an slo to hold")
    for key in slo:
        metric, dot, statistic = key.partition(".")
        if metric not in SEARCHED or (dot and not statistic[1:2].isdigit()):
            known = ", ".join(SEARCHED)
            raise ValueError(f"a search cannot use {key}: it uses {known}, alone or with a percentile: ttft_ms.p99")


class Load(Noun):
    """Exactly one way in which requests come, for a time or for a count."""

    closed: Closed | None = Field(default=None, description="a fixed number of users; the default, with one")
    open: Open | None = Field(default=None, description="a fixed rate of requests, answered or not")
    stages: tuple[Stage, ...] | None = Field(
        default=None, min_length=1, description="several levels of load, one after the other"
    )
    replay: Replay | None = Field(default=None, description="a trace")
    mlperf: Mlperf | None = Field(default=None, description="one of MLPerf's scenarios")
    search: Search | None = Field(default=None, description="the highest load that holds the SLO")
    duration: DurationNs | None = Field(default=None, description="how long; default: 30s unless `requests` is given")
    requests: int | None = Field(default=None, ge=1, le=100_000_000, description="how many requests, then it ends")
    warmup: Literal["auto", "none"] | DurationNs = Field(
        default="auto", description="time left out at the beginning; auto: until a steady state is detected"
    )
    drain: DurationNs = _lasting(30 * 10**9, "how long requests in flight may take after the last one was sent")
    timeout: DurationNs = _lasting(60 * 10**9, "for one request, from when it is sent")
    repeats: int = Field(default=5, ge=1, le=1000, description="whole loads, each one run of the statistics")
    errors: Literal["none", "any"] | Share = Field(
        default=0.05, description="the share of requests that may fail; with more, `prony run` ends with exit code 1"
    )
    cache: Literal["as-is", "cold", "warm"] = Field(
        default="as-is",
        description="for an LLM server: cold empties its prefix cache before each run, if it offers that; warm "
        "sends every prompt once before a server's first run, and the same text in each; as-is does neither",
    )
    same_text: bool = Field(
        default=False,
        description="for LLM prompts: the same text in every run; default: each begins with words that are new in "
        "every run, so that no run finds the text of another in the server's cache",
    )
    slo: dict[str, Positive] = Field(
        default={},
        max_length=20,
        description="limits: `ttft_ms: 200` is for each request, for goodput; `ttft_ms.p99: 200` is for a run",
    )
    clients: Clients = Field(default=Clients(), description="the clients that send")
    seeds: Seeds = Field(default=Seeds(), description="seeds of everything random")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) > 1:
            raise ValueError(f"choose one of {', '.join(given)}")
        if self.search is not None:
            _check_searched(self.slo)
        return self

    @model_validator(mode="after")
    def _enough_for_all(self) -> Self:
        agents = self.clients.agents
        if (agents > 1 or self.clients.on) and self.way in ("search", "mlperf"):
            raise ValueError(f"{self.way} is sent by one agent: clients.agents is for closed, open, stages and replay")
        users = [stage.concurrency for stage in self.stages or () if stage.concurrency is not None]
        if self.way == "closed":
            users = [self.users.concurrency]
        if self.open is not None and self.open.most_in_flight is not None:
            users = [self.open.most_in_flight]
        if users and max(users) < agents:
            raise ValueError(f"{agents} clients.agents need as many requests in flight, and there are {max(users)}")
        return self

    @field_validator("slo")
    @classmethod
    def _check_slo(cls, slo: dict[str, float]) -> dict[str, float]:
        for key in slo:
            metric, dot, statistic = key.partition(".")
            if not dot and metric not in REQUEST_LIMITS:
                raise ValueError(f"{key} is not a limit of one request; use one of {', '.join(REQUEST_LIMITS)}")
            if dot and (metric not in METRICS or statistic not in STATISTICS):
                raise ValueError(f"{key} is not a metric with a statistic, such as ttft_ms.p99 or throughput_per_s.p50")
        return slo

    @property
    def is_salted(self) -> bool:
        """Does every prompt begin with words that are new in each run?"""
        return not self.same_text and self.cache != "warm"

    @property
    def way(self) -> str:
        """Which way it is; closed where none is written."""
        return next((way for way in WAYS if getattr(self, way) is not None), "closed")

    def allows_failures(self, failed: int, total: int) -> bool:
        """May so many of all requests fail?"""
        if isinstance(self.errors, str):
            return self.errors == "any" or not failed
        return failed <= self.errors * total

    @property
    def users(self) -> Closed:
        return self.closed or Closed()

    @property
    def asked_requests(self) -> int | None:
        """How many requests were asked for in numbers, of all users together; None where none were."""
        each = self.users.requests if self.way == "closed" else None
        of_all = None if each is None else each * self.users.concurrency
        return min((count for count in (self.requests, of_all) if count is not None), default=None)

    def is_cut_at(self, sent: int) -> bool:
        """Did its time limit end it before as many requests were sent as were asked for?"""
        asked = self.asked_requests
        return self.duration is not None and self.way in ("closed", "open") and asked is not None and sent < asked

    @property
    def duration_ns(self) -> int | None:
        """How long requests are sent; None where a count, the stages, the trace or the scenario decides."""
        is_counted = self.requests is not None or self.users.requests is not None
        if self.duration is None and not is_counted and self.way in ("closed", "open"):
            return 30 * 10**9
        return self.duration
