"""What a recipe says of a server under load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from prony.model.load import Load
from prony.model.metric import LOAD_HEADLINE, LOAD_METRICS, QUALITY_FAMILIES
from prony.model.workload import Option, Section, Workload


class ServiceWorkload(Workload):
    """Load on a server: one that Prony starts (`service`) or one that runs already (`endpoint`)."""

    section: ClassVar[Section] = "load"
    wrong_section: ClassVar[str] = "`measure` is for models; for a service, use `load`"
    headline: ClassVar[str | None] = LOAD_HEADLINE
    metric_names: ClassVar[tuple[str, ...] | None] = (*LOAD_METRICS, "throughput_per_s")
    families: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "latency": ("e2e_ms.p50", ("e2e_ms", "service_ms", "ttfb_ms")),
        "first token": ("ttft_ms.p50", ("ttft_ms", "ttft_content_ms")),
        "tokens": ("tpot_ms.p50", ("tpot_ms", "itl_ms", "tokens_per_s_per_user")),
        "throughput": (
            "throughput_per_s.p50",
            ("throughput_per_s", "output_tokens_per_s", "total_tokens_per_s", "goodput_per_s", "items_per_s"),
        ),
        "errors": ("error_rate.mean", ("error_rate",)),
        "quality": ("quality.mean", ("quality",)),
        **QUALITY_FAMILIES,
        "highest load": ("highest_load.p50", ("highest_load",)),
    }
    sample_noun: ClassVar[str] = "request"
    unit_noun: ClassVar[str] = "requests"
    runs_commands: ClassVar[bool] = True
    runs_in_place: ClassVar[bool] = True
    named_fields: ClassVar[Mapping[str, str]] = {"service": "services", "driver": "drivers", "task": "tasks"}

    kind: Literal["service"] = Field(description="which kind of workload this is")
    service: str | None = Field(
        default=None, min_length=1, description="the service to start; `prony services` lists them", examples=["redis"]
    )
    settings: dict[str, Option] = Field(default={}, description="service settings: configuration, model, arguments")
    restart: Literal["auto", "each-run", "once"] = Field(
        default="auto",
        description="when to start the service: before each run, with its data made again, or once for all runs; "
        "auto: before each run if that takes at most 2 s, but once for LLMs, searches and several agents",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="URL of a running server; a unix socket is unix:///path",
        examples=["http://127.0.0.1:8000", "redis://127.0.0.1:6379/0"],
        json_schema_extra={"path": "url"},
    )
    driver: str | None = Field(
        default=None,
        min_length=1,
        description="the protocol; default: the service's own",
        examples=["openai-chat", "redis"],
    )
    options: dict[str, Option] = Field(default={}, description="driver options: operations, sizes, model name")
    task: str | None = Field(default=None, min_length=1, description="what an LLM is asked; default: synthetic")
    prompts: dict[str, Option] = Field(default={}, description="task options: lengths, data set, turns")
    metrics_url: str | None = Field(
        default=None,
        min_length=1,
        description="Prometheus page to read during the load; default: the service's own",
    )

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.service or self.endpoint or "a service"

    @property
    def tool(self) -> str:
        """By what."""
        return self.driver or self.service or ""

    def count_agents(self, load: Load) -> int:
        """Return how many run a job together: those that send, and the service's node where these have their own."""
        return load.clients.agents + (load.clients.on is not None)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.service is not None and self.endpoint is not None:
            raise ValueError("set either service (Prony starts it) or endpoint (it runs already), not both")
        if self.endpoint is not None and self.driver is None:
            raise ValueError("an endpoint needs a driver")
        if self.service is None and self.restart == "each-run":
            raise ValueError("restart needs a service that Prony starts: it has no effect on an endpoint")
        return self


SCHEMA = ServiceWorkload
