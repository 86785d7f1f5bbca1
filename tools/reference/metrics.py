"""The lines of docs/metrics.md: every metric, in the order that people chose."""

from __future__ import annotations

import re

from prony.model.metric import METRICS
from prony.ports.metric_titles import metric_title
from tools.reference.markdown import format_text

_METRIC = re.compile(r"^\| `(\w+)` \|[^\n]*$", re.MULTILINE)


def write_metric_rows(page: str) -> str:
    """Return the page of metrics with the line of each metric as the code has it."""
    metrics, heading, rest = page.partition("## Statistics")
    return _METRIC.sub(lambda found: _format_row(found[1]), metrics) + heading + rest


def _format_row(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"docs/metrics.md: no metric is called {name}")
    metric = METRICS[name]
    # Other metrics are code; the few without an underscore are also ordinary words.
    words = re.split(r"(\w+)", metric.meaning)
    meaning = "".join(f"`{word}`" if "_" in word and word in METRICS else word for word in words)
    return f"| `{name}` | {metric_title(name)} | {metric.unit} | {metric.better} | {format_text(meaning)} |"
