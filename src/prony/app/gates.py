"""A Dossier in, the outcomes of its recipe's gates out; a regression is judged against the last good experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prony.analyse.gates import Worsening, judge_gates
from prony.errors import InputError
from prony.model.dossier import Dossier, Entry
from prony.model.estimate import Estimate
from prony.model.experiment import ExperimentState
from prony.model.gate import parse_gate, trouble_of_kind
from prony.model.gate_outcome import GateOutcome, GateReport
from prony.model.result import ResultState
from prony.store.store import Store

# How far back an earlier experiment of the same name is looked for.
_MOST_EARLIER = 50
Reference = Callable[[Entry], Worsening]


def gate_outcomes(store: Store, dossier: Dossier, more: Sequence[str] = ()) -> tuple[GateOutcome, ...]:
    """Judge the gates of a recipe, and `more` of them, on every job that has a result."""
    gates = [*dossier.experiment.recipe.gates, *more]
    if not gates:
        return ()
    found: list[GateOutcome] = []
    for entry in dossier.entries:
        worsening = against_earlier(store, dossier, entry)
        failed = entry.result.state is ResultState.FAILED
        found += judge_gates(gates, entry.summary, worsening, failed=failed)
    return tuple(found)


def gate_report(store: Store, dossier: Dossier, *, strict: bool, more: Sequence[str] = ()) -> GateReport:
    """The same as one noun; an experiment without gates is no report but a question back."""
    for text in more:
        _check(text, dossier.experiment.recipe.workload.kind)
    if not dossier.experiment.recipe.gates and not more:
        hint = "write `gates:` into the recipe, or give one: --gate 'e2e_ms.p99 <= 20'"
        raise InputError(f"experiment {dossier.experiment.id} has no gates", hint=hint, code="no_gates")
    outcomes = (*dossier.gates, *(gate_outcomes(store, _without_gates(dossier), more) if more else ()))
    experiment = dossier.experiment
    return GateReport(experiment_id=experiment.id, name=experiment.name, strict=strict, outcomes=outcomes)


def _check(text: str, kind: str) -> None:
    try:
        parse_gate(text)
        trouble = trouble_of_kind(text, kind)
    except ValueError as exc:
        raise InputError(f"gate {text!r}: {exc}", code="gate") from exc
    if trouble is not None:
        raise InputError(f"gate {trouble}", code="gate")


def _without_gates(dossier: Dossier) -> Dossier:
    recipe = dossier.experiment.recipe.model_copy(update={"gates": ()})
    return dossier.model_copy(update={"experiment": dossier.experiment.model_copy(update={"recipe": recipe})})
