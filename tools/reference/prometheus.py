"""The tables of docs/api.md and docs/agents.md: the metrics that servers and agents show to Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client.metrics import MetricWrapperBase

from prony.agent.metrics import KNOWN, PREFIX
from prony.app.fleet.fleet import Fleet
from prony.app.fleet.state import FleetState
from prony.server.metrics import Metrics
from tools.reference.markdown import format_table, format_text, replace_table

_SERVER = ("metric", "meaning", "labels")
_AGENT = ("metric", "meaning")
_ENDINGS = {"counter": "_total", "info": "_info"}


def write_server_metrics(page: str) -> str:
    """Return the page of the API with the table of a server's metrics as the server has them."""
    return replace_table(page, _SERVER, format_table(_SERVER, _server_rows()))


def write_agent_metrics(page: str) -> str:
    """Return the page of agents with the table of an agent's metrics as the agent has them."""
    rows = [(f"`{PREFIX}{name}`", format_text(meaning)) for name, (_, meaning) in KNOWN.items()]
    return replace_table(page, _AGENT, format_table(_AGENT, rows))


def _server_rows() -> Iterator[tuple[str, str, str]]:
    for name, meaning, labels in list_families():
        yield f"`{name}`", format_text(meaning), ", ".join(f"`{label}`" for label in labels)


def list_families() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the name, the meaning and the labels of every family of Prony's own, also of one without a value."""
    context = SimpleNamespace(now=float, hooks=[])
    server = Metrics(cast(Fleet, SimpleNamespace(state=FleetState(), context=context)), ())
    for collector in list(server._registry._collector_to_names):
        if isinstance(collector, MetricWrapperBase):
            kind = collector._type or ""
            yield f"{collector._name}{_ENDINGS.get(kind, '')}", collector._documentation, tuple(collector._labelnames)
        elif collector is server._devices_and_jobs:
            yield from map(_describe_family, server._devices_and_jobs.collect())


def _describe_family(family: Any) -> tuple[str, str, tuple[str, ...]]:
    return f"{family.name}{_ENDINGS.get(family.type, '')}", family.documentation, tuple(family._labelnames)
