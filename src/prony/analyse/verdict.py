"""Evidence in, verdict out: every rule is asked, and the worst reason decides."""

from __future__ import annotations

from collections.abc import Iterable

from prony.analyse.evidence import Evidence, Rule
from prony.analyse.rules import answers, external_results, machine, repetition, steadiness
from prony.model.estimate import Grade, Reason, Verdict

RULES: tuple[Rule, ...] = (
    repetition.nothing_measured,
    answers.not_finite,
    external_results.no_samples,
    external_results.warmup_unknown,
    external_results.unit_unverified,
    external_results.machine_unwatched,
    machine.check_contamination,
    machine.check_counters,
    answers.different_answer,
    repetition.failed_repetitions,
    repetition.partial_result,
    repetition.few_runs,
    steadiness.no_steady_state,
    steadiness.never_warm,
    repetition.wide_interval,
    machine.check_throttling,
    machine.too_short_for_the_clock,
    answers.other_precision,
    steadiness.steadiness_unjudged,
    steadiness.stopped_by_time,
    steadiness.page_cache_mixed,
    repetition.until_reached,
    repetition.blind,
)
_WORST_FIRST = (Grade.VOID, Grade.SUSPECT, Grade.VALID)


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict with its reasons, the worst first; reasons of grade valid are notes."""
    return verdict_of(reason for rule in RULES for reason in rule(evidence))


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that these reasons make: the worst decides."""
    ordered = sorted(reasons, key=lambda reason: _WORST_FIRST.index(reason.grade))
    return Verdict(grade=ordered[0].grade if ordered else Grade.VALID, reasons=tuple(ordered))
