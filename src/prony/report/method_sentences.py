"""State how an experiment's numbers, comparisons, histories and gates were judged."""

from __future__ import annotations

from prony.model.calibration import Calibration, describe_disturbance
from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.model.target import PlacementNote
from prony.report import comparison, number, sweep_tables

_QUANTILES = (
    "Quantiles within a run are median-unbiased (type 8); the interval of a median over runs is by order statistics. "
    "A run may be correlated with the one before, so an interval of 95 % needs ten runs; with fewer, the confidence "
    "beside the interval is lower. Shares have Wilson's interval."
)
_GATES = (
    "A gate passes if the whole interval of its number is within "
    "the limit, fails if none of it is, and is undecided in between."
)


def decision_sentences(analysis: AnalysedExperiment) -> list[str]:
    """Return how numbers, comparisons, sweeps, histories and gates were judged, as far as there are any."""
    told = [_QUANTILES]
    if analysis.gates:
        told.append(_GATES)
    if analysis.comparison is not None:
        told.append(comparison.method(analysis.comparison))
    if analysis.sweep is not None:
        told.append(sweep_tables.method(analysis.sweep))
    told += analysis.methods
    return [*told, _noise(analysis.calibration)]


def placement_sentences(data: ExperimentData) -> list[str]:
    """Return where the jobs that ran at a target were measured, a sentence for each placement."""
    notes = (entry.result.placement for entry in data.entries)
    return [_placement(note) for note in {note.key: note for note in notes if note is not None}.values()]


def _placement(note: PlacementNote) -> str:
    job = f", job {note.native_id}" if note.native_id else ""
    nodes = f" on {', '.join(note.nodes)}" if note.nodes else ""
    waited = note.waits_s
    wait = "" if waited is None else f", after {waited:.0f} s in its queue"
    return f"Measured at the target {note.target} ({note.kind}){job}{nodes}{wait}."


def _noise(calibration: Calibration | None) -> str:
    if calibration is None or calibration.noise_class is None:
        return "The noise of this machine is unknown: measure it with `prony calibrate --deep`."
    if calibration.disturbed:
        return f"The noise of this machine is unknown: {describe_disturbance(calibration)}."
    level = (
        ""
        if calibration.alpha is None
        else f", and comparisons test at a level of {number.format_share(calibration.alpha)}"
    )
    return f"By its deep calibration this machine is {calibration.noise_class}{level}."
