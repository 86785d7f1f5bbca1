"""Draw items a second over the batch size."""

from __future__ import annotations

from collections.abc import Sequence

from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.model.job_plot import JobPlot, PlotLine, PlotPoint
from prony.report import entry_fields

_RATE = "throughput_per_s.p50"


def plot_batches(entries: Sequence[Entry]) -> tuple[JobPlot, ...]:
    """Return a line for each setting that was run with several batch sizes; no picture where there is none."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in (one for one in entries if _RATE in one.summary.estimates):
        groups.setdefault(_other_settings(entry), []).append(entry)
    drawn = {key: sorted(mine, key=_batch_size) for key, mine in groups.items() if len(set(map(_batch_size, mine))) > 1}
    if not drawn:
        return ()
    names = entry_fields.name_lines(list(drawn), only=_engine(next(iter(drawn.values()))[0]))
    lines = tuple(
        PlotLine(name=name, role="line", points=tuple(_point(one) for one in mine))
        for name, mine in zip(names, drawn.values(), strict=True)
    )
    return (JobPlot(title="Throughput over batch size", x_title="batch size", y_title="items per second", lines=lines),)


def _other_settings(entry: Entry) -> tuple[str, ...]:
    """Return what tells the lines apart."""
    work = entry.job.work(ModelWorkload)
    options = ", ".join(f"{name} {value}" for name, value in work.options.items())
    return (
        entry.environment.device.name, work.model, _engine(entry), f"unit {work.unit}", f"threads {work.threads}",
        f"precision {work.precision}", options, f"inputs {work.inputs.model_dump_json()}",
    )  # fmt: skip


def _engine(entry: Entry) -> str:
    return entry.job.work(ModelWorkload).engine


def _batch_size(entry: Entry) -> int:
    return entry.job.work(ModelWorkload).batch_size


def _point(entry: Entry) -> PlotPoint:
    rate = entry.summary.estimates[_RATE]
    return PlotPoint(
        x=_batch_size(entry), y=rate.value, y_low=rate.low, y_high=rate.high, label=entry_fields.label(entry),
        is_void=entry.summary.verdict.grade is Grade.VOID,
    )  # fmt: skip
