"""Compare jobs in rows and columns, mark the best only where intervals lie apart, and compute the Pareto front.

Rows and columns are facts, settings or labels of jobs. The front weighs value against cost or power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from prony.analyse.cost import price_of, worths_of
from prony.analyse.estimates import pool_runs
from prony.analyse.metric_keys import read_metric_key
from prony.errors import InputError
from prony.model.estimate import Estimate, Grade, headline_of
from prony.model.experiment_data import Entry
from prony.model.matrix import Against, MatrixCell, MatrixReport, MatrixTerms, ParetoPoint
from prony.model.metric import Better, Metric, key_text, metric_of
from prony.model.recipe import Cost
from prony.model.result import ResultState
from prony.ports.metric_titles import metric_title
from prony.ports.workload import shown_kind

NOTHING = "–"


def _axis_value(entry: Entry, word: str) -> str | None:
    """Return what the job has under this word; None where it has nothing."""
    if word in _WORDS:
        found = _WORDS[word](entry)
        return None if found in (None, "") else str(found)
    if word.startswith("labels."):
        name = word.removeprefix("labels.")
        return entry.job.labels.get(name, entry.environment.labels.get(name))
    if word in entry.job.cell:
        return str(entry.job.cell[word])
    document = entry.job.model_dump(mode="json", include={"workload", "load", "measure"})
    for path in (word, f"workload.{word}", f"load.{word}"):
        value = _at(document, path.split("."))
        if value is not None:
            return str(value)
    return None


def _settings_of(entry: Entry) -> dict[str, str]:
    """Return everything in which two jobs may differ, by its path."""
    document = entry.job.model_dump(mode="json", include={"workload", "load", "measure"})
    for key in ("repeats", "seeds", "slo", "errors"):
        document["load"].pop(key, None)
    facts = {word: _axis_value(entry, word) or NOTHING for word in ("device", "version")}
    return facts | _flat(document)


def _flat(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= _flat(inner, f"{path}.{key}" if path else str(key))
        return found
    return {} if value is None else {path.removeprefix("workload."): str(value)}


def _at(document: Any, keys: list[str]) -> Any:
    for key in keys:
        if not isinstance(document, Mapping) or key not in document:
            return None
        document = document[key]
    return None if isinstance(document, Mapping) else document


def _of_model(name: str) -> Callable[[Entry], Any]:
    return lambda entry: getattr(entry.job.workload, name, None)


def _device(entry: Entry) -> str:
    return entry.environment.device.name


def _precision(entry: Entry) -> str | None:
    told = entry.result.effective
    if told is not None:
        return told.precision
    asked: str | None = getattr(entry.job.workload, "precision", None)
    return asked


def _batch(entry: Entry) -> int | None:
    """Return what a model calls `batch_size`, and a language model `batch`."""
    found = (getattr(entry.job.workload, name, None) for name in ("batch_size", "batch"))
    return next((size for size in found if size is not None), None)


def _version(entry: Entry) -> str | None:
    if entry.result.effective is not None:
        return entry.result.effective.engine_version
    return entry.result.service.version if entry.result.service is not None else None


def _concurrency(entry: Entry) -> int | None:
    is_closed = entry.job.workload.section == "load" and entry.job.load.way == "closed"
    return entry.job.load.users.concurrency if is_closed else None


# Words that people use, and where they lead.
_WORDS: dict[str, Callable[[Entry], Any]] = {
    "device": _device,
    "engine": lambda entry: entry.job.workload.tool,
    "model": lambda entry: entry.job.workload.subject,
    "service": lambda entry: entry.job.workload.subject,
    "unit": _of_model("unit"),
    "precision": _precision,
    "batch": _batch,
    "threads": _of_model("threads"),
    "concurrency": _concurrency,
    "rate": lambda entry: f"{entry.job.load.open.rate:g}" if entry.job.load.open is not None else None,
    "version": _version,
    "name": lambda entry: entry.job.name,
    "experiment": lambda entry: entry.job.experiment_id,
    "cpu": lambda entry: entry.environment.device.hardware.cpu.model,
    "gpu": lambda entry: ", ".join(gpu.name for gpu in entry.environment.device.hardware.gpus) or None,
}
WORDS = tuple(_WORDS)


_Point = tuple[MatrixCell, Estimate, Estimate]


def front(cells: Sequence[MatrixCell], better: Better, against: Against | None) -> tuple[ParetoPoint, ...]:
    """Return every cell that has both numbers; one is dominated where another of the same work is no worse in both and
    better in one with its whole interval."""
    if better == "neither":
        return ()
    kinds: tuple[Against, ...] = (against,) if against is not None else ("cost", "power")
    for kind in kinds:
        points = [point for cell in cells if (point := _point(cell, kind)) is not None]
        if len(points) > 1:
            sign = 1 if better == "lower" else -1
            return tuple(
                ParetoPoint(
                    row=cell.row, column=cell.column, value=value, against=price,
                    is_front=not any(_dominates(other, (cell, value, price), sign) for other in points),
                )
                for cell, value, price in points
            )  # fmt: skip
    return ()


def _point(cell: MatrixCell, against: Against) -> _Point | None:
    if cell.estimate is None or cell.grade is Grade.VOID or not cell.worths:
        return None
    worth = cell.worths[0]
    found = {"cost": worth.per_million, "power": worth.power_w, "energy": worth.joules_each}[against]
    return None if found is None else (cell, cell.estimate, found)


def _dominates(one: _Point, other: _Point, sign: int) -> bool:
    if one[0] is other[0] or one[0].work != other[0].work:
        return False
    pairs = [(one[1], other[1], sign), (one[2], other[2], 1)]
    no_worse = all(way * mine.value <= way * theirs.value for mine, theirs, way in pairs)
    return no_worse and any(_clearly(mine, theirs, way) for mine, theirs, way in pairs)


def _clearly(mine: Estimate, theirs: Estimate, way: int) -> bool:
    if mine.low is None or mine.high is None or theirs.low is None or theirs.high is None:
        return False
    return mine.high < theirs.low if way > 0 else mine.low > theirs.high


_USUAL = {"error_rate": "mean", "quality": "mean"}
_MOST_NAMED = 4


@dataclass(frozen=True)
class Priced:
    """A job, and what its recipe says of the price of its machine."""

    entry: Entry
    cost: Cost | None = None


@dataclass(frozen=True)
class _Place:
    row: str
    column: str
    jobs: tuple[Priced, ...]

    @property
    def entries(self) -> list[Entry]:
        return [job.entry for job in self.jobs]


def matrix_report(jobs: Sequence[Priced], terms: MatrixTerms) -> MatrixReport:
    """Compare the jobs; what cannot stand in one cell, or not beside another, is told and not averaged."""
    if not jobs:
        raise InputError("no job has a result yet", hint="wait for a result: prony list", code="no_result")
    first = jobs[0].entry
    own = {name: one for job in reversed(jobs) for name, one in job.entry.summary.metrics.items()}
    key = _metric_key(terms.metric or headline_of(first.summary, first.job.workload.kind) or "wall_s.p50", own)
    metric = metric_of(key, own)
    places = _places(jobs, terms)
    cells = _mark_best([_cell(place, key) for place in places], metric.better)
    return MatrixReport(
        experiments=tuple(dict.fromkeys(job.entry.job.experiment_id for job in jobs)), terms=terms, metric=key,
        unit=metric.unit, better=metric.better, rows=tuple(dict.fromkeys(one.row for one in places)),
        columns=tuple(dict.fromkeys(one.column for one in places)), cells=tuple(cells),
        pareto=front(cells, metric.better, terms.against), notes=tuple(_notes(cells, jobs)),
    )  # fmt: skip


def _metric_key(text: str, own: Mapping[str, Metric] = MappingProxyType({})) -> str:
    """Return the key of a metric as a person writes it; without a statistic, its usual one."""
    parts = read_metric_key(text, own)
    return key_text(parts.metric, parts.statistic or _USUAL.get(parts.metric, "p50"), parts.operation)


def _places(jobs: Sequence[Priced], terms: MatrixTerms) -> list[_Place]:
    found: dict[tuple[str, str], list[Priced]] = {}
    values = {word: [_axis_value(job.entry, word) for job in jobs] for word in (terms.rows, terms.columns)}
    for word, told in values.items():
        if all(value is None for value in told):
            hint = f"use {', '.join(WORDS)}, labels.NAME, or the path of a setting, for example options.value_size"
            raise InputError(f"no job has anything under {word!r}", hint=hint, code="unknown_axis")
    for place, job in enumerate(jobs):
        row, column = (values[word][place] or NOTHING for word in (terms.rows, terms.columns))
        found.setdefault((row, column), []).append(job)
    rows, columns = (_in_order([pair[side] for pair in found]) for side in (0, 1))
    return [
        _Place(row, column, tuple(found[row, column])) for row in rows for column in columns if (row, column) in found
    ]


def _in_order(words: Sequence[str]) -> list[str]:
    """Return each once: numbers by size, words as they first appear."""
    once = list(dict.fromkeys(words))
    return sorted(once, key=float) if all(_is_number(word) for word in once) else once


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _cell(place: _Place, key: str) -> MatrixCell:
    cell = MatrixCell(row=place.row, column=place.column, jobs=tuple(one.job.id for one in place.entries))
    good = replace(place, jobs=tuple(job for job in place.jobs if job.entry.result.state is not ResultState.FAILED))
    if not good.jobs:
        return cell.model_copy(update={"note": "every job here failed"})
    differing = _differing(good.entries)
    if differing:
        told = "; ".join(differing[:_MOST_NAMED])
        return cell.model_copy(update={"note": f"{len(good.jobs)} jobs that differ: {told}"})
    first = good.jobs[0]
    prices = [price_of(job.cost, job.entry.environment.labels) for job in good.jobs]
    price = prices[0] if all(one == prices[0] for one in prices) else None
    estimate = _estimate(good.entries, key)
    return cell.model_copy(update={
        "estimate": estimate, "grade": _worst(good.entries), "worths": worths_of(good.entries, price),
        "work": _work(first.entry, key), "note": "" if estimate is not None else f"no {metric_title(key)}",
    })  # fmt: skip


def _differing(entries: Sequence[Entry]) -> list[str]:
    """Return in what jobs of one cell differ; nothing where one is the other measured again."""
    settings = [_settings_of(entry) for entry in entries]
    paths = list(dict.fromkeys(path for one in settings for path in one))
    found = []
    for path in paths:
        values = list(dict.fromkeys(one.get(path, NOTHING) for one in settings))
        if len(values) > 1:
            found.append(f"{path} is {', '.join(values[:_MOST_NAMED])}")
    return found


def _estimate(entries: Sequence[Entry], key: str) -> Estimate | None:
    if len(entries) == 1:
        return entries[0].summary.estimates.get(key)
    return pool_runs([entry.summary for entry in entries], key)


def _worst(entries: Sequence[Entry]) -> Grade:
    return max((entry.summary.verdict.grade for entry in entries), key=[*Grade].index)


def _work(entry: Entry, key: str) -> str:
    """Return what is done, as far as the metric depends on it: cells of other work do not compete."""
    return shown_kind(entry.job.workload.kind).summary.work(entry, key)


def _mark_best(cells: list[MatrixCell], better: Better) -> list[MatrixCell]:
    """Mark the best of each work where its interval lies apart from all others, else those that are as good."""
    if better == "neither":
        return cells
    sign = 1 if better == "lower" else -1
    marked = list(cells)
    for work in dict.fromkeys(cell.work for cell in cells):
        mine = [n for n, cell in enumerate(cells) if cell.work == work and _competes(cell)]
        if len(mine) < 2:
            continue
        first, *others = sorted(mine, key=lambda n: sign * _of(cells[n]).value)
        near = [n for n in others if not _apart(_of(cells[first]), _of(cells[n]), sign)]
        for n in [first, *near]:
            marked[n] = cells[n].model_copy(update={"mark": "as good" if near else "best"})
    return marked


def _competes(cell: MatrixCell) -> bool:
    return cell.estimate is not None and cell.estimate.low is not None and cell.grade is not Grade.VOID


def _of(cell: MatrixCell) -> Estimate:
    assert cell.estimate is not None
    return cell.estimate


def _apart(best: Estimate, other: Estimate, sign: int) -> bool:
    ends = (best.low, best.high, other.low, other.high)
    if any(end is None for end in ends):
        return False
    low, high, their_low, their_high = (end or 0.0 for end in ends)
    return their_low > high if sign > 0 else their_high < low


def _worth_notes(cells: Sequence[MatrixCell]) -> list[str]:
    """Return why a cost or a power is missing, with the cells of which it is said where it is not said of all."""
    by_note: dict[str, list[str]] = {}
    for cell in cells:
        for note in dict.fromkeys(worth.note for worth in cell.worths if worth.note):
            by_note.setdefault(note, []).append(f"{cell.row} × {cell.column}")
    return [
        f"{note}." if len(names) == len(cells) else f"{', '.join(names)}: {note}." for note, names in by_note.items()
    ]


def _notes(cells: Sequence[MatrixCell], jobs: Sequence[Priced]) -> list[str]:
    told: list[str] = []
    works = list(dict.fromkeys(cell.work for cell in cells if cell.estimate is not None))
    if len(works) > 1:
        told.append(f"Different workloads ({len(works)} kinds): each is compared only with its own kind.")
    precisions = {_axis_value(job.entry, "precision") for job in jobs} - {None}
    if len(precisions) > 1:
        told.append(
            f"Different precisions: {', '.join(sorted(map(str, precisions)))}. Faster results may be less accurate."
        )
    void = [f"{cell.row} × {cell.column}" for cell in cells if cell.grade is Grade.VOID]
    if void:
        told.append(f"Excluded void results: {', '.join(void)}.")
    told += [f"{cell.row} × {cell.column}: {cell.note}." for cell in cells if cell.note]
    return told + _worth_notes([cell for cell in cells if cell.worths])
