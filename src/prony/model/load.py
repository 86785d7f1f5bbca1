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
    """A fixed number of users; each sends the next request when the last one is answered."""

    concurrency: int = Field(default=1, ge=1, le=100_000, description="users, each with one request in flight")
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
    """A fixed rate: requests are sent whether or not earlier ones are answered."""

    rate: Positive = Field(description="requests per second")
    arrivals: Arrivals = Field(default="poisson", description="distribution of the gaps between requests")
    burstiness: Positive = Field(
        default=1.0, description="for gamma arrivals: shape of the gaps; 1 is Poisson, less is burstier"
    )
    most_in_flight: int | None = Field(
        default=None, ge=1, description="requests above this are dropped and counted; default: no limit"
    )


class Stage(Noun):
    """One step of a load, with either `rate` or `concurrency`."""

    duration: DurationNs = Field(description="how long it lasts")
    rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="requests per second"
    )
    concurrency: int | None = Field(default=None, ge=1, le=100_000, description="requests in flight")
    ramp: bool = Field(default=False, description="change in a straight line from the level of the stage before")
    arrivals: Arrivals = Field(default="poisson", description="distribution of the gaps between requests")
    burstiness: Positive = Field(default=1.0, description="for gamma arrivals: shape of the gaps, as in `open`")

    @model_validator(mode="after")
    def _one_level(self) -> Self:
        if (self.rate is None) == (self.concurrency is None):
            raise ValueError("choose exactly one of rate and concurrency")
        return self


class Replay(Noun):
    """A trace: when each request came, and how long it and its answer were."""

    file: str = Field(min_length=1, description="path of the trace", json_schema_extra={"path": True})
    layout: Literal["auto", "jsonl", "mooncake", "burstgpt"] = Field(
        default="auto", description="its columns; auto: detected from its first line"
    )
    speed: Positive = Field(default=1.0, description="2 takes half the time")
    requests: int | None = Field(default=None, ge=1, description="only the first N requests")


class Mlperf(Noun):
    """One of MLPerf's four scenarios with its rules. A shorter test is not a submission; the report says so."""

    scenario: Scenario = Field(description="how queries come")
    rate: Positive | None = Field(
        default=None, description="server: queries per second; offline: expected samples per second"
    )
    samples_per_query: int | None = Field(
        default=None, ge=1, description="samples in each query; default: the scenario's own"
    )
    min_duration: DurationNs = _lasting(600 * 10**9, "the shortest time from the first query to the last")
    min_queries: int | None = Field(
        default=None, ge=1, description="least number of queries; default: the scenario's own"
    )
    percentile: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="percentile of the latency that is judged; default: 0.9 for single-stream, 0.99 for the others",
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
    """Find the highest load that holds the SLO: double it until the SLO fails, then bisect."""

    over: Literal["concurrency", "rate"] = Field(default="concurrency", description="what to raise")
    low: Positive = Field(default=1.0, description="the first level")
    high: Positive = Field(default=4096.0, description="the last level, if the SLO holds until there")
    probe: DurationNs = _lasting(10 * 10**9, "how long each load is held")
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="stop when the bounds are this close, as a share"
    )
    arrivals: Arrivals = Field(default="poisson", description="for a rate: distribution of the gaps between requests")


class Clients(Noun):
    """The processes that send, on one machine or on several; they start together and share one schedule."""

    agents: int = Field(
        default=1,
        ge=1,
        le=256,
        description="agents that send together, each from its own device; several need a server or a Slurm target",
    )
    processes: int | None = Field(
        default=None, ge=1, le=256, description="client processes per agent; default: as many as the load needs"
    )
    on: str | None = Field(
        default=None,
        min_length=1,
        description="target whose nodes send the load; the service then has a node of `place.on` for itself",
    )


class Seeds(Noun):
    """Seeds of the random choices; each can change while the others stay."""

    arrivals: int = Field(default=1, ge=0, description="seed of the times when requests are due")
    prompts: int = Field(default=2, ge=0, description="seed of the prompts")
    lengths: int = Field(default=3, ge=0, description="seed of the prompts' lengths")


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
    """How requests come: exactly one of `closed`, `open`, `stages`, `replay`, `mlperf` and `search`."""

    closed: Closed | None = Field(default=None, description="a fixed number of users; the default, with one")
    open: Open | None = Field(default=None, description="a fixed rate of requests, answered or not")
    stages: tuple[Stage, ...] | None = Field(
        default=None, min_length=1, description="several levels of load, one after the other"
    )
    replay: Replay | None = Field(default=None, description="a trace")
    mlperf: Mlperf | None = Field(default=None, description="one of MLPerf's scenarios")
    search: Search | None = Field(default=None, description="find the highest load that holds the SLO")
    duration: DurationNs | None = Field(
        default=None, description="how long the load lasts; default: 30s unless `requests` is given"
    )
    requests: int | None = Field(default=None, ge=1, le=100_000_000, description="total number of requests")
    warmup: Literal["auto", "none"] | DurationNs = Field(
        default="auto", description="time left out at the start; auto: until the steady state"
    )
    drain: DurationNs = _lasting(30 * 10**9, "how long requests in flight may take after the last one was sent")
    timeout: DurationNs = _lasting(60 * 10**9, "for one request, from when it is sent")
    repeats: int = Field(default=5, ge=1, le=1000, description="whole loads, each one run of the statistics")
    errors: Literal["none", "any"] | Share = Field(
        default=0.05,
        description="share of requests that may fail; with more, `prony run` exits with code 1. `none`: no failures; "
        "`any`: all may fail",
        json_schema_extra={"default": "5%"},
    )
    cache: Literal["as-is", "cold", "warm"] = Field(
        default="as-is",
        description="prefix cache of an LLM server: cold empties it before each run, if the server can; warm "
        "fills it before the server's first run, and sends the same text in each run",
    )
    same_text: bool = Field(
        default=False,
        description="send the same LLM prompts in every run; false: each prompt begins with new words, so that no run "
        "finds text of another run in the server's cache",
    )
    slo: dict[str, Positive] = Field(
        default={},
        max_length=20,
        description="limits: `ttft_ms: 200` for each request (goodput), `ttft_ms.p99: 200` for a run",
    )
    clients: Clients = Field(default=Clients(), description="the clients that send")
    seeds: Seeds = Field(default=Seeds(), description="seeds of the random choices")

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
