"""Contrast two jobs metric by metric: choose the metrics, draft the tests, judge them, and describe the result.

Between drafting and judging stands the correction for how many are tested at once, which needs to see them all.

Headline metrics decide; the others are shown behind them. Medians, tails and means of the same runs rise and fall
together: they are one family, and only its headline counts when the number of tests is corrected for. What a family's
own headline lacks is said there and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from prony.analyse.compare.effect import (
    ComparedRuns,
    RunCounts,
    breaks,
    chance_among,
    conclude,
    effect_of,
    is_significant,
    item_effect,
    more_runs,
    needs_turns,
    rise_together,
    share_effect,
)  # fmt: skip
from prony.analyse.metric_keys import complete_key, read_metric_key
from prony.analyse.wording import plain_number
from prony.model.comparison import Conclusion, Contrast, Effect, Terms, chance_text, percent_text
from prony.model.estimate import OF_THE_MACHINE, Estimate, Grade, Summary, Verdict, verdict_on
from prony.model.experiment_data import Entry
from prony.model.metric import Metric, key_of, metric_of
from prony.model.result import ResultState
from prony.model.workload import workload_class
from prony.ports.metric_titles import metric_title
from prony.stats.apart import ASSUMED_SPREAD, ApartSpread

# How far whole results of both sides lie apart in a metric; nothing of what does not vary by itself.
Apart = Callable[[str], tuple[ApartSpread, ...]]


def contrast_sentence(contrast: Contrast, title: str, threshold: float, tests: int = 1) -> str:
    """Say it; `tests` is how many decided at once."""
    effect = contrast.effect
    if effect is None:
        return ""
    what = f"{title}: {metric_title(contrast.key)}"
    sure = f"{_runs(effect)}, {_chance(effect, tests)}"
    change = f"{effect.change} {effect.interval}".strip()
    match contrast.conclusion:
        case Conclusion.REGRESSION | Conclusion.IMPROVEMENT | Conclusion.DIFFERENT:
            ways = {Conclusion.REGRESSION: "got worse, ", Conclusion.IMPROVEMENT: "got better, "}
            told = ways.get(contrast.conclusion, "differs, ")
            return f"{what} {told}{change}{_from_to(contrast)}; {sure}."
        case Conclusion.EQUIVALENT:
            limit = "1 point" if effect.scale == "difference" else percent_text(threshold)
            return f"{what} is the same within {limit}, {change}{_from_to(contrast)}; {sure}."
        case _:
            return f"{what} is inconclusive, {change}{_from_to(contrast)}; {sure}. {_settling(contrast, threshold)}"


def apart_sentence(effect: Effect) -> str:
    """Say how far results lie apart that were not measured together, and how that is known."""
    calibrated = effect.apart_calibrated
    is_believed = calibrated is not None and calibrated > ASSUMED_SPREAD
    if effect.apart_results:
        beside = " and this machine's deep calibration" if is_believed else ""
        known = f"from {effect.apart_results} earlier results{beside}"
    elif is_believed:
        known = "from this machine's deep calibration: there are no earlier results"
    else:
        less = "" if calibrated is None else ", and the deep calibration found less"
        known = f"assumed: no earlier results{less}"
    return f"Two separate results of the same thing differ by about {percent_text(effect.apart or 0.0)} ({known})."


def value_text(estimate: Estimate | None) -> str:
    if estimate is None:
        return "nothing"
    unit = {"1": "", "1/s": "/s"}.get(estimate.unit, estimate.unit)
    return f"{plain_number(estimate.value)} {unit}".rstrip()


def _from_to(contrast: Contrast) -> str:
    return f" ({value_text(contrast.baseline)} to {value_text(contrast.candidate)})"


def _runs(effect: Effect) -> str:
    if effect.counted == "items":
        return f"{effect.runs[0]} items in pairs"
    return f"{effect.runs[0]} against {effect.runs[1]} runs"


def _chance(effect: Effect, tests: int) -> str:
    if effect.p is None:
        return "untested"
    among = f", {chance_text(effect.q)} corrected for {tests} tests" if effect.q is not None and tests > 1 else ""
    known = effect.apart_p if effect.apart_q is None else effect.apart_q
    apart = f"; as two separate results, p {_equals(chance_text(known))}" if known is not None else ""
    return f"p {_equals(effect.chance)}{among}{apart}"


def _equals(chance: str) -> str:
    return chance if chance.startswith("<") else f"= {chance}"


def _settling(contrast: Contrast, threshold: float) -> str:
    effect = contrast.effect
    if effect is None:
        return ""
    if effect.counted == "items":
        return "More items can decide it."
    if effect.scale == "difference":
        return "More or longer runs can decide it."
    if needs_turns(effect, threshold):
        return f"{apart_sentence(effect)} More runs cannot decide this; running both alternately can (prony duet)."
    if contrast.more_runs is None:
        noise = percent_text(effect.noise or 0.0)
        return f"Runs vary by {noise}, too much to decide this here: run both alternately on a quieter machine."
    limit = percent_text(threshold)
    begin = "The change is real but may be too small to matter" if is_significant(effect) else (
        f"The data show neither a change of {limit} nor its absence"
    )  # fmt: skip
    return f"{begin}; about {contrast.more_runs} more runs on each side would decide it."


_ERRORS = "error_rate.mean"
# A verdict's codes for a load of which no request was answered.
_NO_ANSWER = frozenset(("all_failed", "no_success", "no_requests"))
# Extremes and spreads of a run say little of the next run.
_WHOLE = ("wall_s", "cpu_s")
_SHOWN = ("p50", "mean", "p90", "p95", "p99", "p99.9")


@dataclass(frozen=True)
class MetricChoice:
    key: str
    role: Literal["headline", "supporting"]
    family: str


def choose_metrics(
    kind: str, known: Collection[str], metrics: Collection[str], own: Mapping[str, Metric] = MappingProxyType({})
) -> list[MetricChoice]:
    """Return what to compare, each headline before what stands behind it; `metrics` are those a person named, `own`
    those of a script."""
    if metrics:
        return [MetricChoice(key, "headline", key_of(key).metric) for key in _match_metrics(metrics, known, own)]
    if own:
        return _choose_script_metrics(known, own)
    found: list[MetricChoice] = []
    for family, (headline, members) in workload_class(kind).families.items():
        mine = [key for key in known if key_of(key).metric in members and _is_shown(key)]
        if headline in known:
            found.append(MetricChoice(headline, "headline", family))
        found += [MetricChoice(key, "supporting", family) for key in sorted(mine, key=_order) if key != headline]
    return found


def _choose_script_metrics(known: Collection[str], own: Mapping[str, Metric]) -> list[MetricChoice]:
    """Return what a script told. What has a better way decides, and the first of all; what Prony measured of the whole
    execution stands behind it."""
    keys = [key for key in known if key_of(key).metric in own]
    found = []
    for place, key in enumerate(keys):
        name = key_of(key).metric
        decides = place == 0 or (own[name].better != "neither" and name not in _WHOLE)
        found.append(MetricChoice(key, "headline" if decides else "supporting", name))
    return found


def _match_metrics(metrics: Collection[str], known: Collection[str], own: Mapping[str, Metric]) -> list[str]:
    """Return the keys that a person means: whole ones, or a metric's middle where no statistic is said."""
    found = []
    for text in metrics:
        read_metric_key(text, own)
        found.append(complete_key(text, known))
    return list(dict.fromkeys(found))


def _is_shown(key: str) -> bool:
    return key_of(key).statistic in _SHOWN


def _order(key: str) -> tuple[str, str, int]:
    parts = key_of(key)
    return parts.operation, parts.metric, _SHOWN.index(parts.statistic)


@dataclass(frozen=True)
class DraftContrast:
    """One metric of two jobs before it is judged.

    `trouble` says why there is no effect; `runs` are what a ratio was taken of.
    """

    wanted: MetricChoice
    effect: Effect | None
    trouble: str
    runs: ComparedRuns | None = None
    # The requests of the candidate fail and those of the baseline do not, which needs no test.
    breaks: bool = False

    @property
    def apart_p(self) -> float | None:
        """The same of the spread between whole results; None of sides that were measured together."""
        return self.effect.apart_p if self.effect is not None and self.wanted.role == "headline" else None

    @property
    def p(self) -> float | None:
        """What is corrected together with those of all other headlines; None of what decides nothing."""
        return self.effect.p if self.effect is not None and self.wanted.role == "headline" else None

    def among(self, adjusted: float | None, tests: int) -> float | None:
        """Return the probability among all `tests` headlines, of which the permutation tests say `adjusted`."""
        if adjusted is None or self.effect is None or self.runs is None:
            return adjusted
        return chance_among(self.effect, adjusted, tests, self.runs)


def drafts(baseline: Entry, candidate: Entry, terms: Terms, *, interleaved: bool, apart: Apart) -> list[DraftContrast]:
    """Return what there is to judge of two jobs, in the order in which it is shown."""
    first, second = baseline.summary, candidate.summary
    # Only numbers with a run or a count behind them can be compared.
    known = dict.fromkeys((*first.runs, *first.counts, *second.runs, *second.counts))
    found = choose_metrics(baseline.job.workload.kind, known, terms.metrics, own={**second.metrics, **first.metrics})
    made = _draft_of(first, second, interleaved=interleaved, apart=apart)
    return [
        DraftContrast(one, None, void)
        if (void := _void(baseline, candidate, one.key))
        else replace(made(one), breaks=_breaks(baseline, candidate, one.key))
        for one in found
    ]


def contrast(
    draft: DraftContrast, pair: tuple[Entry, Entry], terms: Terms, *, q: float | None, apart_q: float | None, tests: int
) -> Contrast:
    """Judge one draft; `q` and `apart_q` are its probabilities among all `tests` headlines."""
    baseline, candidate = pair
    key = draft.wanted.key
    metric = metric_of(key, {**candidate.summary.metrics, **baseline.summary.metrics})
    effect = draft.effect.model_copy(update={"q": q, "apart_q": apart_q}) if draft.effect is not None else None
    conclusion = Conclusion.INSUFFICIENT
    if effect is not None:
        conclusion = conclude(effect, metric.better, terms.threshold, terms.level)
    if draft.breaks:
        conclusion = Conclusion.REGRESSION
    made = Contrast(
        key=key, unit=metric.unit, better=metric.better, role=draft.wanted.role, family=draft.wanted.family,
        baseline=baseline.summary.estimates.get(key), candidate=candidate.summary.estimates.get(key),
        effect=effect, conclusion=conclusion, sentence="",
        more_runs=more_runs(effect, terms.threshold) if effect and conclusion is Conclusion.INCONCLUSIVE else None,
    )  # fmt: skip
    title = title_of(baseline, candidate)
    # A void side is void in all that the machine decides: that is one sentence, however many metrics it has.
    subject = title if _void(baseline, candidate, key) else f"{title}: {metric_title(key)}"
    said = contrast_sentence(made, title, terms.threshold, tests) or f"{subject} was not decided: {draft.trouble}."
    if draft.breaks:
        said = _breaking_sentence(subject, baseline, candidate, key)
    return made.model_copy(update={"sentence": said})


def _breaks(baseline: Entry, candidate: Entry, key: str) -> bool:
    first, second = (entry.summary.run_counts.get(key, ()) for entry in (baseline, candidate))
    if key == _ERRORS and _sent_nothing(candidate):
        return any(failed < total for failed, total in first)
    return breaks(first, second, candidate.job.load)


def _sent_nothing(entry: Entry) -> bool:
    """Is it a load of which not one request was sent, and that nobody stopped?"""
    is_load = workload_class(entry.job.workload.kind).section == "load"
    return (
        is_load and entry.result.state is not ResultState.PARTIAL and not (entry.summary.counts or entry.summary.runs)
    )


def _breaking_sentence(subject: str, baseline: Entry, candidate: Entry, key: str) -> str:
    before = baseline.summary.run_counts[key]
    if _sent_nothing(candidate):
        failure = candidate.result.failure
        why = f": {failure.message.removesuffix('.')}" if failure is not None else ""
        return f"{subject} got worse: the candidate sent no request{why} (before, {_failures(before)} failed)."
    after = candidate.summary.run_counts[key]
    whole = "all requests of the candidate failed" if all(failed == total for failed, total in after) else (
        "in every run of the candidate more requests failed than load.errors allows, in none of the baseline"
    )  # fmt: skip
    return f"{subject} got worse: {whole} ({_failures(before)}, then {_failures(after)})."


def _failures(side: RunCounts) -> str:
    failed, total = (sum(column) for column in zip(*side, strict=True))
    return f"{failed} of {total} in {len(side)} run{'' if len(side) == 1 else 's'}"


def title_of(baseline: Entry, candidate: Entry) -> str:
    """Return what both are called, or the one against the other."""
    before, after = baseline.job.title, candidate.job.title
    return before if before == after else f"{after} against {before}"


def _void(baseline: Entry, candidate: Entry, key: str) -> str:
    for name, entry in (("baseline", baseline), ("candidate", candidate)):
        verdict = verdict_on(entry.summary, key)
        if verdict.grade is Grade.VOID and not _is_known_although_void(verdict, key):
            reason = next((one.text for one in verdict.reasons if one.grade is Grade.VOID), "no reason was recorded")
            return f"the {name} is void: {reason.removesuffix('.')}"
    return ""


def _is_known_although_void(verdict: Verdict, key: str) -> bool:
    """Is the number good although the job is void? Where no request succeeded there is no latency, but a share of
    failures, and a disturbed machine makes no request fail."""
    codes = {one.code for one in verdict.reasons if one.grade is Grade.VOID}
    return key_of(key).metric == "error_rate" and codes <= _NO_ANSWER | OF_THE_MACHINE


def _draft_of(
    first: Summary, second: Summary, *, interleaved: bool, apart: Apart
) -> Callable[[MetricChoice], DraftContrast]:
    def draft(one: MetricChoice) -> DraftContrast:
        if trouble := _lacking(one.key, first, second):
            return DraftContrast(one, None, trouble)
        runs = None
        if one.key in first.items and one.key in second.items:
            found = item_effect(first.items[one.key], second.items[one.key])
        elif one.key in first.counts:
            counts = [summary.run_counts.get(one.key, ()) for summary in (first, second)]
            shares = [[failed / total for failed, total in side if total] for side in counts]
            runs = ComparedRuns(shares[0], shares[1])
            found = share_effect(counts[0], counts[1])
        else:
            earlier, later = first.runs[one.key], second.runs[one.key]
            took_turns = interleaved and first.used == second.used and len(earlier) == len(later) == len(first.used)
            # Pairs find more where the sides went up and down together, and less where they did not.
            runs = ComparedRuns(earlier, later, paired=took_turns and rise_together(earlier, later))
            found = effect_of(earlier, later, paired=runs.paired, apart=() if interleaved else apart(one.key))
        return DraftContrast(one, None, found) if isinstance(found, str) else DraftContrast(one, found, "", runs)

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
