"""Show what a script reported: its settings, its curves step by step, and the machine beside it.

There is one curve for each metric, set of labels, rank and run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from prony.instruments.samples import SAMPLES
from prony.kinds.script.schema import ScriptWorkload
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.picture import StepLine
from prony.model.section import Fact, Section
from prony.ports.workload import SETTINGS, Drawings, Report
from prony.report import entry_fields
from prony.report.html.job import BESIDE
from prony.report.html.method import HOW
from prony.report.html.tags import Html, add_caption, tag
from prony.report.plots import figure as draw
from prony.report.plots import job
from prony.report.plots.series import find_frame

if TYPE_CHECKING:
    import polars as pl


# Of a longer curve so many points are shown, evenly, its first and last among them.
MOST_POINTS = 500
_MOST_CURVES = 400
_MOST_PANELS = 6


def curves(entry: Entry) -> list[StepLine]:
    """Return every curve of at least two steps, metric by metric in the order in which they were first told."""
    import polars as pl

    frame = find_frame(entry, SAMPLES)
    if frame is None or "step" not in frame.columns:
        return []
    stepped = frame.filter(pl.col("step").is_not_null() & (pl.col("phase").cast(pl.String) == "measure"))
    keys = ["name", "labels", "rank", "repetition"]
    parts = stepped.partition_by(keys, maintain_order=True)
    found = [_curve(part) for part in parts if part.height > 1][:_MOST_CURVES]
    order = list(dict.fromkeys(one.metric for one in found))
    return sorted(found, key=lambda one: order.index(one.metric))


def _curve(part: pl.DataFrame) -> StepLine:
    import numpy as np

    ordered = part.sort("step", maintain_order=True)
    chosen = np.unique(np.linspace(0, ordered.height - 1, min(MOST_POINTS, ordered.height)).round().astype(int))
    name, labels, rank, repetition = (ordered[key][0] for key in ("name", "labels", "rank", "repetition"))
    return StepLine(
        metric=name, unit=next((unit for unit in ordered["unit"] if unit), ""),
        labels=json.loads(labels) if labels else {}, rank=rank, repetition=int(repetition),
        steps=tuple(ordered["step"].to_numpy()[chosen].tolist()),
        values=tuple(ordered["value"].to_numpy()[chosen].tolist()), total=ordered.height,
    )  # fmt: skip


@draw.with_style
def over_steps(entry: Entry, found: Sequence[StepLine]) -> Html | None:
    """Draw value against step, a panel for each metric and a colour for each set of labels and rank."""
    names = list(dict.fromkeys(one.metric for one in found))[:_MOST_PANELS]
    if not names:
        return None
    lines = list(dict.fromkeys(one.series for one in found))
    figure, panels = draw.canvas(draw.NARROW, 0.7 + 1.1 * len(names), 6, panels=len(names))
    for axes, name in zip(panels, names, strict=True):
        mine = [one for one in found if one.metric == name]
        for one in mine:
            colour = draw.COLOURS[lines.index(one.series) % len(draw.COLOURS)]
            axes.plot(one.steps, one.values, color=colour, linewidth=1.0, alpha=0.7)
        unit = mine[0].unit
        axes.set_title(f"{draw.shorten(name)}{f', {unit}' if unit else ''}", loc="left", pad=3)
        axes.locator_params(axis="y", nbins=4)
    panels[-1].set_xlabel("step")
    if len(lines) > 1:
        for place, line in enumerate(lines[: len(draw.COLOURS)]):
            panels[0].plot([], [], color=draw.COLOURS[place], label=draw.shorten(line or "unlabelled", 24))
        draw.legend(figure, panels[0])
    return draw.svg(figure, f"steps-{entry.job.id}", f"Values of {entry_fields.label(entry)} by step")


class ScriptReport(Report):
    """What reports show of scripts."""

    method = HOW
    example = "script.yaml"

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        """Return what was executed; values of variables may be secret and are left out."""
        asked, did = entry.job.work(ScriptWorkload), entry.result.script
        launch = asked.launch
        told: list[tuple[str, str | None]] = [
            ("requested command", asked.subject), ("directory", asked.directory), ("image", asked.image),
            ("variables", ", ".join(asked.environment) or None),
            ("launch", f"{launch.kind}, {launch.processes} processes on {launch.nodes} nodes"),
            ("reduced by", asked.reduce),
        ]  # fmt: skip
        if did is not None:
            told += [("command", " ".join(did.command)), ("program", did.program or None)]
            told += [("folder's checksum", did.directory or None), ("launcher", did.launcher or None)]
            told += [("nodes", ", ".join(did.nodes) or None)]
            told += [("not as requested", note) for note in did.notes]
        return (Section(title=SETTINGS, facts=tuple(told)),)

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        did = entry.result.script
        told = () if did is None else (("Program", did.program), ("Launcher", did.launcher))
        return tuple((name, value) for name, value in told if value)

    def draw(self, data: ExperimentData, apart: Collection[str]) -> Drawings:
        return Drawings(apart={entry.job.id: _draw(entry) for entry in data.entries if entry.job.id in apart})

    def curves(self, entry: Entry) -> list[StepLine]:
        return curves(entry)


def _draw(entry: Entry) -> Html:
    drawn = (
        ("Step by step.", "The reported values by step: a line for each run, a colour for each set of labels and rank.",
         over_steps(entry, curves(entry))),
        (*BESIDE, job.telemetry(entry)),
    )  # fmt: skip
    return tag(
        "div", *(add_caption(title, text, plot) for title, text, plot in drawn if plot is not None), class_="pair"
    )


PART = ScriptReport()
