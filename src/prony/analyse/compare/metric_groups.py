"""Choose the metrics of a comparison: headlines that decide and those shown behind them.

Medians, tails and means of the same runs rise and fall together: they are one family, and only its headline counts when
the number of tests is corrected for. What a family's own headline lacks is told there and decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from prony.errors import InputError
from prony.model.metric import METRICS, Metric, key_of
from prony.model.workload import workload_class

# Extremes and spreads of a run say little of the next run.
_WHOLE = ("wall_s", "cpu_s")
_SHOWN = ("p50", "mean", "p90", "p95", "p99", "p99.9")


@dataclass(frozen=True)
class MetricChoice:
    key: str
    role: Literal["headline", "supporting"]
    family: str


def choose_metrics(
    kind: str, known: Collection[str], metrics: Collection[str], own: Mapping[str, Metric] = MappingProxyType({})
) -> list[MetricChoice]:
    """Return what to compare, each headline before what stands behind it; `metrics` are those a person named, `own`
    those of a script."""
    if metrics:
        return [MetricChoice(key, "headline", key_of(key).metric) for key in _match_metrics(metrics, known, own)]
    if own:
        return _choose_script_metrics(known, own)
    found: list[MetricChoice] = []
    for family, (headline, members) in workload_class(kind).families.items():
        mine = [key for key in known if key_of(key).metric in members and _is_shown(key)]
        if headline in known:
            found.append(MetricChoice(headline, "headline", family))
        found += [MetricChoice(key, "supporting", family) for key in sorted(mine, key=_order) if key != headline]
    return found


def _choose_script_metrics(known: Collection[str], own: Mapping[str, Metric]) -> list[MetricChoice]:
    """Return what a script told. What has a better way decides, and the first of all; what Prony measured of the whole
    execution stands behind it."""
    keys = [key for key in known if key_of(key).metric in own]
    found = []
    for place, key in enumerate(keys):
        name = key_of(key).metric
        decides = place == 0 or (own[name].better != "neither" and name not in _WHOLE)
        found.append(MetricChoice(key, "headline" if decides else "supporting", name))
    return found


def _match_metrics(metrics: Collection[str], known: Collection[str], own: Mapping[str, Metric]) -> list[str]:
    """Return the keys that a person means: whole ones, or a metric's middle where no statistic is said."""
    found = []
    for text in metrics:
        key = key_of(text)
        if key.metric not in METRICS and key.metric not in own:
            near = get_close_matches(key.metric, [*own, *METRICS], n=1)
            hint = f"did you mean {near[0]}?" if near else "docs/metrics.md lists them"
            raise InputError(f"there is no metric {text!r}", hint=hint, code="unknown_metric")
        whole = [text] if key.statistic else [f"{text}.p50", f"{text}.mean"]
        found.append(next((one for one in whole if one in known), whole[0]))
    return list(dict.fromkeys(found))


def _is_shown(key: str) -> bool:
    return key_of(key).statistic in _SHOWN


def _order(key: str) -> tuple[str, str, int]:
    parts = key_of(key)
    return parts.operation, parts.metric, _SHOWN.index(parts.statistic)
