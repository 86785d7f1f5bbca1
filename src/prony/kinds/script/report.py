"""Show what a script told: its settings, its curves step by step, and the machine beside it."""

from __future__ import annotations

from collections.abc import Collection

from prony.kinds.script.curves import curves, over_steps
from prony.kinds.script.schema import ScriptWorkload
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.picture import StepLine
from prony.model.section import Fact, Section
from prony.ports.workload import SETTINGS, Drawings, Report
from prony.report.html.job import BESIDE
from prony.report.html.method import HOW
from prony.report.html.tags import Html, add_caption, tag
from prony.report.plots import job


class ScriptReport(Report):
    """What reports show of scripts."""

    method = HOW
    example = "script.yaml"

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        """Return what was executed; values of variables may be secret and are left out."""
        asked, did = entry.job.work(ScriptWorkload), entry.result.script
        launch = asked.launch
        told: list[tuple[str, str | None]] = [
            ("command asked for", asked.subject), ("directory", asked.directory), ("image", asked.image),
            ("variables", ", ".join(asked.environment) or None),
            ("launch", f"{launch.kind}, {launch.processes} processes on {launch.nodes} nodes"),
            ("reduced by", asked.reduce),
        ]  # fmt: skip
        if did is not None:
            told += [("command", " ".join(did.command)), ("program", did.program or None)]
            told += [("folder's checksum", did.directory or None), ("launcher", did.launcher or None)]
            told += [("nodes", ", ".join(did.nodes) or None)]
            told += [("not honoured", note) for note in did.notes]
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
        ("Step by step.", "What was told at each step: a line for each run, a colour for each set of labels and rank.",
         over_steps(entry, curves(entry))),
        (*BESIDE, job.telemetry(entry)),
    )  # fmt: skip
    return tag(
        "div", *(add_caption(title, text, plot) for title, text, plot in drawn if plot is not None), class_="pair"
    )


PART = ScriptReport()
