"""Contrast two jobs metric by metric: draft the tests first, then judge them after correction.

Between the two steps stands the correction for how many are tested at once, which needs to see them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prony.analyse.compare.conclude import conclude, more_runs
from prony.analyse.compare.effect import effect_of, rise_together, share_effect
from prony.analyse.compare.metric_groups import MetricChoice, choose_metrics
from prony.analyse.compare.sentences import sentence
from prony.model.comparison import Conclusion, Contrast, Effect, Terms
from prony.model.estimate import Grade, Summary, verdict_on
from prony.model.experiment_data import Entry
from prony.model.metric import key_of, metric_of


@dataclass(frozen=True)
class Draft:
    """One metric of two jobs before it is judged; `trouble` says why there is no effect."""

    wanted: MetricChoice
    effect: Effect | None
    trouble: str

    @property
    def p(self) -> float | None:
        """What is corrected together with those of all other headlines; None of what decides nothing."""
        return self.effect.p if self.effect is not None and self.wanted.role == "headline" else None


def drafts(baseline: Entry, candidate: Entry, terms: Terms, *, interleaved: bool) -> list[Draft]:
    """Return what there is to judge of two jobs, in the order in which it is shown."""
    first, second = baseline.summary, candidate.summary
    # Only numbers with a run or a count behind them can be compared.
    known = dict.fromkeys((*first.runs, *first.counts, *second.runs, *second.counts))
    found = choose_metrics(baseline.job.workload.kind, known, terms.metrics, own={**second.metrics, **first.metrics})
    made = _draft_of(first, second, interleaved=interleaved)
    return [Draft(one, None, void) if (void := _void(baseline, candidate, one.key)) else made(one) for one in found]


def contrast(draft: Draft, pair: tuple[Entry, Entry], terms: Terms, *, q: float | None, tests: int) -> Contrast:
    """Judge one draft; `q` is its probability among all `tests` headlines."""
    baseline, candidate = pair
    key = draft.wanted.key
    metric = metric_of(key, {**candidate.summary.metrics, **baseline.summary.metrics})
    effect = draft.effect.model_copy(update={"q": q}) if draft.effect is not None else None
    conclusion = Conclusion.INSUFFICIENT
    if effect is not None:
        conclusion = conclude(effect, metric.better, terms.threshold, terms.level)
    made = Contrast(
        key=key, unit=metric.unit, better=metric.better, role=draft.wanted.role, family=draft.wanted.family,
        baseline=baseline.summary.estimates.get(key), candidate=candidate.summary.estimates.get(key),
        effect=effect, conclusion=conclusion, sentence="",
        more_runs=more_runs(effect, terms.threshold) if effect and conclusion is Conclusion.INCONCLUSIVE else None,
    )  # fmt: skip
    title = title_of(baseline, candidate)
    # A void side is void in all that the machine decides: that is one sentence, however many metrics it has.
    subject = title if _void(baseline, candidate, key) else f"{title}: {key}"
    said = sentence(made, title, terms.threshold, tests) or f"{subject} cannot be judged: {draft.trouble}."
    return made.model_copy(update={"sentence": said})


def title_of(baseline: Entry, candidate: Entry) -> str:
    """Return what both are called, or the one against the other."""
    before, after = baseline.job.title, candidate.job.title
    return before if before == after else f"{after} against {before}"


def _void(baseline: Entry, candidate: Entry, key: str) -> str:
    for name, entry in (("baseline", baseline), ("candidate", candidate)):
        verdict = verdict_on(entry.summary, key)
        if verdict.grade is Grade.VOID:
            reason = next((one.text for one in verdict.reasons if one.grade is Grade.VOID), "no reason was recorded")
            return f"the {name} is void: {reason.removesuffix('.')}"
    return ""


def _draft_of(first: Summary, second: Summary, *, interleaved: bool) -> Callable[[MetricChoice], Draft]:
    def draft(one: MetricChoice) -> Draft:
        if trouble := _lacking(one.key, first, second):
            return Draft(one, None, trouble)
        if one.key in first.counts:
            found = share_effect(first.counts[one.key], second.counts[one.key])
        else:
            before, after = first.runs[one.key], second.runs[one.key]
            took_turns = interleaved and first.used == second.used and len(before) == len(after) == len(first.used)
            # Pairs find more where the sides went up and down together, and less where they did not.
            found = effect_of(before, after, paired=took_turns and rise_together(before, after))
        return Draft(one, None, found) if isinstance(found, str) else Draft(one, found, "")

    return draft


def _lacking(key: str, first: Summary, second: Summary) -> str:
    for name, summary in (("baseline", first), ("candidate", second)):
        if key in summary.runs or key in summary.counts:
            continue
        missing = next((one for one in summary.missing if one.metric == key), None)
        if missing is not None:
            statistic = key_of(key).statistic
            return f"a {statistic} needs {missing.needed} samples in each run, and the {name} has {missing.count}"
        return f"the {name} has no such number"
    return ""
