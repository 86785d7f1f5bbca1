"""Build the rows of a script's `samples.parquet`, and reduce them to one number per run.

A row is one number that a script told: when (monotonic nanoseconds of this machine, and the instant by the script's
own account), its name, unit, step, rank and labels as they were told, the node it is of where there are several, and
the way it came.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.samples import SAMPLE_PHASES
from prony.kinds.script.schema import Reduce, ScriptWorkload
from prony.model.metric import publish_name
from prony.ports.plugins import SHIMS, find_plugins

if TYPE_CHECKING:
    import polars as pl

WALL = "wall_s"
CPU = "cpu_s"

_Rank = tuple[int | None, int | None]  # node and rank
_Row = tuple[int, _Rank, float, str | None]


@dataclass(frozen=True)
class EmittedValue:
    """One number. `at_ns` is when the script told it, or when its line was read."""

    at_ns: int
    name: str
    value: float
    origin: str
    unit: str | None = None
    step: float | None = None
    rank: int | None = None
    labels: str = ""
    timestamp: float | None = None


@dataclass(frozen=True)
class ScriptSeries:
    """The numbers of one name with one set of labels: those of a run become one."""

    metric: str
    operation: str
    name: str
    unit: str | None
    runs: Mapping[int, float]


def _known_origins() -> tuple[str, ...]:
    """Return the ways by which a number can come, those of modules that scripts may import among them."""
    return ("emit", *find_plugins(SHIMS), "json", "pattern", "prony")


def told_frame(repetition: int, phase: str, rows: Sequence[EmittedValue], node: int | None = None) -> pl.DataFrame:
    """Return the rows of one run, on one node of several or on one machine."""
    import polars as pl

    count = len(rows)
    schema: Any = {
        "repetition": pl.Int32, "index": pl.Int32, "phase": pl.Enum(SAMPLE_PHASES), "node": pl.Int32, "at_ns": pl.Int64,
        "name": pl.String, "value": pl.Float64, "unit": pl.String, "step": pl.Float64, "rank": pl.Int32,
        "labels": pl.String, "timestamp": pl.Float64, "origin": pl.Enum(_known_origins()),
    }  # fmt: skip
    columns = {
        "repetition": [repetition] * count, "index": range(count), "phase": [phase] * count,
        "node": [node] * count, **{key: [getattr(row, key) for row in rows] for key in [*schema][4:]},
    }  # fmt: skip
    return pl.DataFrame(columns, schema=schema)


def own_rows(span_ns: tuple[int, int], cpu_ns: int, told: Collection[str]) -> list[EmittedValue]:
    """Return what Prony itself measured of a whole execution; where the script tells the same name, it is the one."""
    begin_ns, end_ns = span_ns
    own = {WALL: (end_ns - begin_ns) / 1e9, CPU: cpu_ns / 1e9}
    return [EmittedValue(end_ns, name, value, "prony", unit="s") for name, value in own.items() if name not in told]


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as they are kept: JSON in the order of the names, or nothing."""
    return json.dumps(dict(sorted(labels.items())), ensure_ascii=False, separators=(",", ":")) if labels else ""


def series_of(samples: pl.DataFrame, workload: ScriptWorkload) -> list[ScriptSeries]:
    """Return every series in the order of the recipe's metrics, then in that of their first appearance.

    Labels tell series of one name apart where there are several sets of them.
    """
    declared = {metric.name: metric for metric in workload.all_metrics}
    rows: dict[tuple[str, str], list[_Row]] = {}
    columns = [samples[key].to_list() for key in ("name", "labels", "repetition", "rank", "value", "unit")]
    nodes = samples["node"].to_list() if "node" in samples.columns else [None] * samples.height
    for name, labels, repetition, rank, value, unit, node in zip(*columns, nodes, strict=True):
        rows.setdefault((name, labels), []).append((repetition, (node, rank), value, unit))
    order = {name: place for place, name in enumerate(declared)}
    keys = sorted(rows, key=lambda key: order.get(key[0], len(order)))
    names = _publish_names([name for name, _ in keys])
    found = []
    for name, labels in keys:
        several = sum(1 for other, _ in keys if other == name) > 1
        wish = declared.get(name)
        how = (wish.reduce if wish is not None else None) or workload.reduce
        own = rows[name, labels]
        unit = (wish.unit if wish is not None else None) or next((row[3] for row in own if row[3] is not None), None)
        operation = _operation(labels) if several else ""
        found.append(ScriptSeries(names[name], operation, name, unit, _reduce_runs(own, how)))
    return found


def _publish_names(names: Iterable[str]) -> dict[str, str]:
    """Return the published form of each name; of two that would read the same, the later has a number."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain, number = publish_name(name), 2
        unique = plain
        while unique in found.values():
            unique, number = f"{plain}_{number}", number + 1
        found[name] = unique
    return found


def _operation(labels: str) -> str:
    told: dict[str, str] = json.loads(labels) if labels else {}
    return ",".join(f"{key}={value}" for key, value in told.items()) or "unlabelled"


def _reduce_runs(rows: Iterable[_Row], how: Reduce) -> dict[int, float]:
    """Return the one number of each run: each rank's values first, in the order in which they came, then the ranks'."""
    by_rank: dict[int, dict[_Rank, list[float]]] = {}
    for repetition, rank, value, _ in rows:
        by_rank.setdefault(repetition, {}).setdefault(rank, []).append(value)
    # The last of several ranks is nobody's: they are meant together.
    among: Reduce = "mean" if how == "last" else how
    return {
        repetition: _one([_one(values, how) for values in ranks.values()], among)
        for repetition, ranks in by_rank.items()
    }


def _one(values: Sequence[float], how: Reduce) -> float:
    if how == "last" or len(values) == 1:
        return values[-1]
    if how in ("min", "max"):
        return min(values) if how == "min" else max(values)
    return float(np.mean(values) if how == "mean" else np.median(values))
