"""Choose the columns of numbers that the web pages show of an experiment's results."""

from __future__ import annotations

from prony.model.estimate import headline_of
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import METRICS, key_of
from prony.model.shown_results import ResultColumn
from prony.ports.metric_titles import MACHINE_TITLES, MEASURED_TITLES, metric_title
from prony.ports.workload import shown_kind
from prony.report import entry_fields
from prony.report.table import SHARES, metric_heading


def result_columns(data: ExperimentData) -> tuple[ResultColumn, ...]:
    """Return the columns in which any job has a number: its own, or else the usual ones and those of its kind."""
    own: dict[str, str] = {}
    for entry in data.entries:
        for key, label in _own_columns(entry).items():
            own.setdefault(key, label)
    # What a job tells itself stands for it; what its kind adds stands beside what is usual.
    usual = {} if any(one.summary.metrics for one in data.entries) else _present(data, MEASURED_TITLES)
    labels = usual | own | _present(data, MACHINE_TITLES)
    headlines = {headline_of(one.summary, one.job.workload.kind) for one in data.entries}
    return tuple(_column(data, key, label, is_headline=key in headlines) for key, label in labels.items())


def _present(data: ExperimentData, labels: dict[str, str]) -> dict[str, str]:
    return {key: label for key, label in labels.items() if any(key in one.summary.estimates for one in data.entries)}


def _own_columns(entry: Entry) -> dict[str, str]:
    """Return the labels of what only jobs of this kind have by the keys of their estimates, the headline's first."""
    estimates, report = entry.summary.estimates, shown_kind(entry.job.workload.kind).report
    said = {key: metric_title(key) for key in (_whole_key(entry, one.key) for one in report.columns)}
    told = {key: metric_heading(key) for key in entry_fields.own_keys(entry.summary)}
    found = {key: label for key, label in (told | said).items() if key in estimates}
    first = headline_of(entry.summary, entry.job.workload.kind)
    if report.readings:  # they have a table of their own; in columns, each job would fill others
        return {key: label for key, label in found.items() if key == first}
    order = [*([first] if first in found else []), *(key for key in said if key in found), *found]
    return {key: found[key] for key in dict.fromkeys(order) if key is not None}


def _whole_key(entry: Entry, key: str) -> str:
    """Return the key of the estimate that stands for a metric without a statistic."""
    names = (key, f"{key}.p50", f"{key}.mean")
    return next((name for name in names if name in entry.summary.estimates), key)


def _column(data: ExperimentData, key: str, label: str, *, is_headline: bool) -> ResultColumn:
    entry = next(one for one in data.entries if key in one.summary.estimates)
    name = key_of(key).metric
    metric = entry.summary.metrics.get(name) or METRICS.get(name)
    return ResultColumn(
        key=key, label=label, unit=entry.summary.estimates[key].unit,
        better="neither" if metric is None else metric.better, format="share" if name in SHARES else "number",
        is_headline=is_headline,
    )  # fmt: skip
