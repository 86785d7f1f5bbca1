"""Rules on a script: did it report what the recipe says, in every run, and only numbers?

A verdict on a script is judged on what every verdict is, and on the numbers that the script reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from prony.analyse.verdict import Evidence, note, runs_text, suspect
from prony.kinds.script.samples import ScriptSeries
from prony.kinds.script.schema import ScriptWorkload
from prony.model.estimate import Reason
from prony.model.metric import Metric, depends_on_machine


@dataclass(frozen=True)
class ScriptEvidence(Evidence):
    """`headlines` is the headline of each run that has one; `series` is everything that was told, of `metrics`."""

    headlines: tuple[float, ...] = ()
    series: tuple[ScriptSeries, ...] = ()
    metrics: tuple[Metric, ...] = ()

    @property
    def numbers(self) -> list[float]:
        return list(self.headlines)


_LISTED = 3
_START_SHARE = 0.02  # of the wall time; below, nobody needs to hear of it


def check_refused_values(evidence: ScriptEvidence) -> Iterator[Reason]:
    """Something was told that is no number: whoever wrote the script thinks that it counts."""
    counts: dict[tuple[str, str], int] = {}
    for repetition in evidence.result.repetitions:
        for one in repetition.refused:
            counts[one.name, one.reason] = counts.get((one.name, one.reason), 0) + one.count
    if counts:
        listed = [f"{name} {reason} ({count} times)" for (name, reason), count in [*counts.items()][:_LISTED]]
        more = f", and {len(counts) - _LISTED} more" if len(counts) > _LISTED else ""
        yield suspect("refused", f"Some values that the script reported were ignored: {'; '.join(listed)}{more}.")


def untold(evidence: ScriptEvidence) -> Iterator[Reason]:
    """A metric of the recipe that never came, or not in every run, is likely a slip of a name or of a pattern."""
    used = {repetition.index for repetition in evidence.selection.used}
    told: dict[str, set[int]] = {}
    for series in evidence.series:
        told.setdefault(series.name, set()).update(series.runs.keys() & used)
    for metric in evidence.job.work(ScriptWorkload).all_metrics if used else ():
        if not told.get(metric.name):
            how = "its pattern did not match" if metric.pattern else "the script did not report it"
            yield suspect("untold", f"{metric.name} is missing: {how}.")
    for name, runs in told.items():
        if runs and len(runs) < len(used):
            yield suspect("sometimes_told", f"{name} was reported in only {len(runs)} of {runs_text(len(used))}.")


def left_behind(evidence: ScriptEvidence) -> Iterator[Reason]:
    """Processes that outlive the script took CPU from its next run, had they not been ended."""
    strays = sum(repetition.strays for repetition in evidence.selection.used)
    if strays:
        yield note("strays", f"The script left {strays} processes running; Prony ended them.")


def check_start_cost(evidence: ScriptEvidence) -> Iterator[Reason]:
    """The wall time of a short command is mostly what starting any program costs: say how much."""
    used = evidence.selection.used
    costs = [one.empty_start_ms for one in used if one.empty_start_ms is not None]
    lengths = [(one.phases["measure"].end_ns - one.phases["measure"].begin_ns) / 1e6 for one in used]
    if costs and median(costs) > _START_SHARE * median(lengths):
        yield note(
            "start_cost",
            f"Starting and ending an empty program takes {median(costs):.2f} ms here, which is part of the "
            f"wall time of every execution ({median(lengths):.2f} ms).",
        )


def not_honoured(evidence: ScriptEvidence) -> Iterator[Reason]:
    """What of the recipe was done otherwise."""
    script = evidence.result.script
    for text in script.notes if script is not None else ():
        yield note("not_honoured", f"{text[:1].upper()}{text[1:]}.")


def check_machine_independence(evidence: ScriptEvidence) -> Iterator[Reason]:
    """What a script computed is the same on a busy machine: whoever reads that a job is void must know what is not."""
    names = [one.name for one in evidence.metrics if not depends_on_machine(one)]
    if names and evidence.selection.contaminated:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        yield note(
            "spared",
            f"A disturbed machine does not change {', '.join(names[:_LISTED])}{more}, because they are not times, "
            "rates, power or memory. Gates judge them.",
        )
