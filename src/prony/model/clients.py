"""What the client side of a load was, and what it was pointed at: the facts by which a load may be believed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.model.base import Noun


class ClientTiming(Noun):
    """An agent's clock beside the server's: what is added to its stamps, by how much that may be wrong, how far the
    two drifted apart during the run, and how late the agent was at the common start."""

    offset_ns: int
    uncertainty_ns: int
    drift_ns: int | None = None
    late_ns: int = 0


class Member(Noun):
    """One agent of several that sent a load together, as it saw itself."""

    agent: str
    requests: int
    timing: ClientTiming | None = None
    delivered_rate_per_s: float | None = None
    sent_late_p99_ms: float | None = None
    loop_lag_p99_ms: float | None = None
    kernel_lag_p99_ms: float | None = None
    cpu_shares: tuple[float, ...] = ()
    connections_asked: int | None = None
    connections_opened: int | None = None


class ClientSide(Noun):
    """One run as its clients saw themselves; None where a load has no such thing or the system does not tell.

    A rate is asked of an open load and a concurrency of a closed one. Lags say how late the clients' event loops were:
    `kernel_lag` from when the kernel had bytes until they were read, `loop_lag` from when a loop should have turned.
    """

    asked_rate_per_s: float | None = None
    delivered_rate_per_s: float | None = None
    asked_concurrency: int | None = None
    delivered_concurrency: float | None = None
    sent_late_p50_ms: float | None = None
    sent_late_p99_ms: float | None = None
    sent_late_max_ms: float | None = None
    loop_lag_p50_ms: float | None = None
    loop_lag_p99_ms: float | None = None
    kernel_lag_p50_ms: float | None = None
    kernel_lag_p99_ms: float | None = None
    # Of one core, one for each client process.
    cpu_shares: tuple[float, ...] = ()
    # Whether they ran before all ordinary processes of their machine.
    is_real_time: bool = False
    connections_asked: int | None = None
    connections_opened: int | None = None
    # Requests sent a second time, because the server had closed the connection just when it was used again.
    asked_again: int = 0
    # How many requests of the whole run ended how, by the name of the cause; `ok` is one of them.
    causes: dict[str, int] = Field(default={})
    # Of one agent of several: its clock. Of all together: each of them.
    timing: ClientTiming | None = None
    members: tuple[Member, ...] = ()

    @property
    def processes(self) -> int:
        return len(self.cpu_shares)

    @property
    def delivered_share(self) -> float | None:
        """How much of what was asked came about, 1 is all of it; None where nothing was asked that can be compared.

        What was dropped because too many were in flight was asked of nobody."""
        total = sum(self.causes.values())
        asked = (self.asked_rate_per_s or 0.0) * (1 - self.causes.get("dropped", 0) / total if total else 1)
        if asked and self.delivered_rate_per_s is not None:
            return self.delivered_rate_per_s / asked
        if self.asked_concurrency and self.delivered_concurrency is not None:
            return self.delivered_concurrency / self.asked_concurrency
        return None


class CacheFacts(Noun):
    """What was done about the cache of an LLM's server before a run, and what its own counters say of it.

    `salt` decides the words with which this run's prompts begin; it is empty where they have the same text in every
    run. `shares_prefix`: its prompts begin alike on purpose. Tokens are those of prompts between the run's beginning
    and its end, whoever asked."""

    salt: str = ""
    was_filled: bool = False
    shares_prefix: bool = False
    reset_by: str = ""
    reset_failure: str = ""
    server: str = ""
    queried_tokens: float | None = None
    hit_tokens: float | None = None

    @property
    def hit_share(self) -> float | None:
        """Which share of the tokens came from the cache; None where the server does not tell, or was asked nothing."""
        return self.hit_tokens / self.queried_tokens if self.queried_tokens and self.hit_tokens is not None else None


class ServiceFacts(Noun):
    """What was loaded, as it told itself. `settings` are read back from it; `settable` are those that a recipe can set,
    by their paths below `workload.settings`; `notes` are the driver's.

    `restart` says when it was started; None of an endpoint, and in older results, where it was once. `ready_s` is what
    its first start took, with all that comes before the program and the data that the driver makes."""

    name: str = ""
    version: str = ""
    endpoint: str = ""
    settings: dict[str, str] = Field(default={})
    settable: dict[str, str] = Field(default={})
    command: tuple[str, ...] = ()
    pid: int | None = None
    restart: Literal["each-run", "once"] | None = None
    ready_s: float | None = None
    notes: dict[str, str] = Field(default={})
