"""HTML tables of a job's runs: repetitions, memory, noise, spread and outliers."""

from __future__ import annotations

from prony.model.estimate import Outlier
from prony.model.experiment_data import Entry
from prony.model.metric import METRICS, key_of
from prony.model.result import Noise, Repetition
from prony.report import entry_fields, number
from prony.report.html.tags import Html, grid, join_html, pairs

_MOST_OUTLIERS = 50


def repetitions(entry: Entry) -> Html | None:
    rows = [_repetition(one, entry) for one in entry.result.repetitions]
    headings = [
        "run",
        "kind",
        "state",
        "used",
        "began",
        "import",
        "page cache",
        "load",
        "first",
        "measured",
        "warm",
        "stopped by",
        "remarks",
    ]
    return grid(headings, rows, numeric=(0, 5, 6, 7, 8, 9)) if rows else None


def _repetition(one: Repetition, entry: Entry) -> list[str]:
    def took(phase: str) -> str:
        seen = one.phases.get(phase)
        return number.DASH if seen is None else number.plain(seen.end_ns - seen.begin_ns, "ns")

    remarks = [
        *one.contamination,
        *([entry.summary.excluded[one.index]] if one.index in entry.summary.excluded else []),
    ]
    if one.failure is not None:
        remarks.append(entry_fields.failure_text(one.failure))
    measured = one.phases.get("measure")
    return [
        str(one.index), one.kind, one.state, "yes" if one.index in entry.summary.used else "no",
        f"{one.started_at:%H:%M:%S}", number.DASH if one.import_ns is None else number.plain(one.import_ns, "ns"),
        number.DASH if one.page_cache is None else number.share(one.page_cache), took("load"), took("first"),
        number.DASH if measured is None else f"{measured.count} in {took('measure')}",
        {True: "yes", False: "no", None: "unknown"}[one.warm], one.stopped_by or number.DASH,
        "; ".join(remarks) or "none",
    ]  # fmt: skip


def memory(entry: Entry) -> Html | None:
    def size(kib: int | None) -> str:
        return "unknown" if kib is None else number.plain(kib, "KiB", 4)

    rows = [
        [str(one.index), name,
         *map(size, (one.baseline_rss_kib, seen.rss_anon_kib, seen.rss_file_kib, seen.rss_peak_kib))]
        for one in entry.result.repetitions
        for name, seen in one.phases.items()
    ]  # fmt: skip
    headings = ["run", "phase", "baseline", "anonymous", "file-backed", "high-water mark"]
    return grid(headings, rows, numeric=(0, 2, 3, 4, 5)) if rows else None


def noise(entry: Entry) -> Html | None:
    names = list(Noise.model_fields)
    seen = [name for name in names if any(getattr(one.noise, name) is not None for one in entry.result.repetitions)]
    if not seen:
        return None
    rows = [
        [str(one.index), *(_reading(name, getattr(one.noise, name)) for name in seen)]
        for one in entry.result.repetitions
    ]
    return grid(["run", *(name.replace("_", " ") for name in seen)], rows, numeric=range(len(seen) + 1))


def _reading(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return number.share(value) if name in {"foreign_cpu", "steal"} else number.plain(value)


def spread(entry: Entry) -> Html:
    summary = entry.summary
    told: list[tuple[str, str | None]] = []
    for key, one in summary.spread.items():
        inside = number.share(one.icc) if one.icc is not None else "unknown"
        unit = _unit(key)
        told.append((f"{key}: standard deviation inside a run", number.plain(one.within_sd, unit)))
        told.append((f"{key}: between runs", number.plain(one.between_sd, unit)))
        told.append((f"{key}: share of variance between runs", inside))
        if one.best_count is not None:
            told.append((f"{key}: samples in a run that make the best of the time", str(one.best_count)))
    for key, seen in summary.sensitivity.items():
        told.append((f"{key}: smallest change that {seen.runs} runs on each side show", number.share(seen.detectable)))
    steady = ", ".join(
        f"run {run} from sample {at}" if at is not None else f"run {run} never"
        for run, at in summary.steady_from.items()
    )
    told.append(("steady state", steady or None))
    told.append(("outliers", f"{summary.outlier_count}, labelled and kept"))
    rows = [_outlier(one) for one in summary.outliers[:_MOST_OUTLIERS]]
    listed = grid(["run", "sample", "metric", "value", "label"], rows, numeric=(0, 1, 3)) if rows else None
    return join_html((pairs(told), listed))


def _outlier(one: Outlier) -> list[str]:
    place = number.DASH if one.index is None else str(one.index)
    return [str(one.repetition), place, one.metric, number.plain(one.value, _unit(one.metric)), one.label]


def _unit(key: str) -> str:
    name = key_of(key).metric
    return METRICS[name].unit if name in METRICS else "1"
