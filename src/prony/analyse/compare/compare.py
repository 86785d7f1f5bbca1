"""Compare experiments or jobs, and refuse where their numbers do not mean the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from prony.analyse.canaries import machine_change
from prony.analyse.compare.duet_sides import duet_sides, is_duet
from prony.analyse.compare.matching import Side, across_name, check_across, differences, match
from prony.analyse.compare.pairwise import apart_sentence, contrast, drafts, title_of
from prony.analyse.doubt import add_doubt, judge_by_clean
from prony.errors import InputError
from prony.model.calibration import Calibration, describe_disturbance
from prony.model.comparison import OWN_RULE, Compared, Comparison, Conclusion, Contrast, Difference, Match, Terms
from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.model.metric import metric_of, varies_by_itself
from prony.ports import plugins
from prony.ports.comparison_rule import ComparisonRule
from prony.ports.metric_titles import metric_title
from prony.stats.apart import ApartSpread, estimate_apart_spread, spread_before_history
from prony.stats.permutation import adjust_probabilities

_MOST_NAMED = 12
_APART = (
    "The sides were measured one after the other, so the spread between separate results is included. To "
    "detect smaller changes, run both sides alternately: prony duet, or one matrix and prony compare --across."
)
_ORDER = (
    Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.INSUFFICIENT, Conclusion.DIFFERENT,
    Conclusion.IMPROVEMENT, Conclusion.WITHIN, Conclusion.EQUIVALENT,
)  # fmt: skip

_IN_WORDS = {
    Conclusion.REGRESSION: "worse", Conclusion.INCONCLUSIVE: "inconclusive", Conclusion.INSUFFICIENT: "not decided",
    Conclusion.DIFFERENT: "different", Conclusion.IMPROVEMENT: "better", Conclusion.WITHIN: "within the limits",
    Conclusion.EQUIVALENT: "the same",
}  # fmt: skip
_NAMED = 4

Pair = tuple[Entry, Entry]


# By the id of a job: the numbers of the other results of its series, in the order in which they were measured.
Earlier = Mapping[str, Sequence[Mapping[str, float]]]


@dataclass(frozen=True)
class _Known:
    """What is known of how far whole results lie apart: earlier ones, and what is taken before there are any."""

    earlier: Earlier
    before: ApartSpread

    def spreads(self, pair: Pair, key: str) -> tuple[ApartSpread, ...]:
        """Return how far whole results of both sides lie apart; nothing of sizes and of what is computed."""
        metric = metric_of(key, {**pair[1].summary.metrics, **pair[0].summary.metrics})
        if not varies_by_itself(metric):
            return ()
        return tuple(
            estimate_apart_spread(
                np.array([one[key] for one in self.earlier.get(entry.job.id, ()) if key in one]),
                np.array(entry.summary.runs.get(key, ()), dtype=np.float64),
                self.before,
            )
            for entry in pair
        )


def _calibrated_spread(calibration: Calibration | None) -> float | None:
    """Return what a deep calibration saw between whole results; None where none tells."""
    if calibration is None or calibration.disturbed or "session_spread" not in calibration.figures:
        return None
    return calibration.figures["session_spread"].value


def compare_entries(
    sides: Sequence[Side],
    terms: Terms,
    calibration: Calibration | None = None,
    earlier: Earlier = MappingProxyType({}),
) -> Comparison:
    """Compare the first with each other, the sides of a duet, or one with itself along `terms.across`.

    The same input gives the same answer. Where the machine was calibrated deeply, its own level is tested at, and what
    it can show is told. `earlier` results, and that calibration before there are any, tell how far those that were
    measured apart differ by themselves.
    """
    if calibration is not None and calibration.alpha is not None and not calibration.disturbed:
        terms = terms.model_copy(update={"level": min(terms.level, calibration.alpha)})
    if len(sides) == 1 and is_duet(sides[0].entries):
        sides, paths = duet_sides(sides[0])
        terms = terms.model_copy(update={"across": tuple(dict.fromkeys((*terms.across, *paths)))})
    check_across(terms.across, [entry for side in sides for entry in side.entries])
    found = match(sides, terms.across)
    unlike = [differences(*pair, terms.across) for pair in found.pairs]
    if not terms.anyway:
        _refuse(unlike)
    known = _Known(earlier, spread_before_history(_calibrated_spread(calibration)))
    judged = _judge_pairs(found.pairs, terms, known) if terms.rule == OWN_RULE else _apply_rule(terms.rule, found.pairs)
    matches = tuple(
        Match(
            title=title_of(*pair), baseline=_describe_entry(pair[0]), candidate=_describe_entry(pair[1]),
            interleaved=_took_turns(*pair), machine=machine_change(*pair),
            differences=unlike[place], contrasts=tuple(judged[place]),
        )
        for place, pair in enumerate(found.pairs)
    )  # fmt: skip
    contrasts = [one for match in matches for one in match.contrasts]
    conclusion, said = _overall(contrasts, len(matches))
    return Comparison(
        terms=terms, baseline=sides[0].name, candidates=tuple(side.name for side in sides[1:]),
        matches=matches, unmatched=found.unmatched,
        notes=(*_notes(found.pairs, terms, contrasts), *_machine(calibration)),
        conclusion=conclusion, sentence=said,
    )  # fmt: skip


def _refuse(unlike: Sequence[Sequence[Difference]]) -> None:
    refused = [one for several in unlike for one in several if not one.allowed]
    told = dict.fromkeys(f"{one.kind}: {one.path} is {one.baseline} and {one.candidate}" for one in refused)
    if told:
        name = across_name(refused[0])
        shown = list(told)[:_MOST_NAMED]
        more = f"; and {len(told) - len(shown)} more" if len(told) > len(shown) else ""
        raise InputError(
            f"the results are not comparable: {'; '.join(shown)}{more}",
            hint=f"--across {name} allows a different {name}; --anyway compares in spite of all differences",
            code="not_comparable",
        )


def _judge_pairs(pairs: Sequence[Pair], terms: Terms, known: _Known) -> list[list[Contrast]]:
    drawn = [drafts(*pair, terms, interleaved=_took_turns(*pair), apart=partial(known.spreads, pair)) for pair in pairs]
    all_drafts = [draft for several in drawn for draft in several]
    tests = [draft.p for draft in all_drafts if draft.p is not None]
    among, among_apart = _adjust(tests), _adjust([draft.apart_p for draft in all_drafts if draft.apart_p is not None])
    judged = [
        [
            contrast(
                draft,
                pair,
                terms,
                q=draft.among(among.get(draft.p), len(tests)),
                apart_q=among_apart.get(draft.apart_p),
                tests=len(tests),
            )
            for draft in several
        ]
        for pair, several in zip(pairs, drawn, strict=True)
    ]
    doubted = [
        [add_doubt(one, *pair, took_turns=_took_turns(*pair)) for one in several]
        for pair, several in zip(pairs, judged, strict=True)
    ]
    headlines = sum(one.role == "headline" for several in doubted for one in several)

    def judge(one: Contrast, pair: Pair) -> Contrast:
        spreads = () if _took_turns(*pair) else known.spreads(pair, one.key)
        return judge_by_clean(one, *pair, tests=headlines, apart=math.hypot(*(side.sd for side in spreads)))

    return [[judge(one, pair) for one in several] for pair, several in zip(pairs, doubted, strict=True)]


def _adjust(probabilities: Sequence[float]) -> dict[float | None, float]:
    """Return each one's probability among all of them; equal ones are adjusted alike."""
    return dict(zip(probabilities, adjust_probabilities(probabilities), strict=True))


def _apply_rule(name: str, pairs: Sequence[Pair]) -> list[list[Contrast]]:
    rule: ComparisonRule = plugins.load_plugin(plugins.COMPARISON_RULES, name)
    return [list(rule(*pair)) for pair in pairs]


def _describe_entry(entry: Entry) -> Compared:
    job = entry.job
    return Compared(
        experiment_id=job.experiment_id, job_id=job.id, title=job.title, cell=job.cell, verdict=entry.summary.verdict
    )


def _took_turns(baseline: Entry, candidate: Entry) -> bool:
    """Did they take turns? Jobs of one experiment do, where one machine ran them in the same stretch of time."""
    first, second = baseline.result, candidate.result
    if baseline.job.experiment_id != candidate.job.experiment_id or first.ended_at is None or second.ended_at is None:
        return False
    if baseline.environment.device.hardware_id != candidate.environment.device.hardware_id:
        return False
    return max(first.started_at, second.started_at) < min(first.ended_at, second.ended_at)


def _notes(pairs: Sequence[Pair], terms: Terms, contrasts: Sequence[Contrast]) -> tuple[str, ...]:
    told: dict[str, None] = {}
    for path in terms.across:
        told[f"{path} was allowed to differ."] = None
    if not all(_took_turns(*pair) for pair in pairs):
        told[f"{_APART}{_largest_spread(contrasts)}"] = None
    for pair in pairs:
        machine = machine_change(*pair)
        if machine is not None and machine.changed:
            told[machine.sentence] = None
        for entry in pair:
            verdict = entry.summary.verdict
            if verdict.grade is not Grade.VALID:
                why = next((one.text for one in verdict.reasons if one.grade is verdict.grade), "")
                told[f"{entry.job.title} ({entry.job.id}) is {verdict.grade}. {why}".strip()] = None
    return tuple(told)


def _largest_spread(contrasts: Sequence[Contrast]) -> str:
    """Say how far whole results lie apart in the headline that varies most from one to the next."""
    effects = [one.effect for one in contrasts if one.effect is not None and one.role == "headline"]
    apart = [one for one in effects if one.apart is not None]
    return f" {apart_sentence(max(apart, key=lambda one: one.apart or 0.0))}" if apart else ""


def _machine(calibration: Calibration | None) -> list[str]:
    """Return how far this machine can be trusted with a comparison, as equal runs of it told."""
    if calibration is None or calibration.noise_class is None:
        return []
    if calibration.disturbed:
        return [f"The noise of this machine is unknown: {describe_disturbance(calibration)}."]
    names = ("run_noise", "seen_with_10_runs", "false_alarm_rate")
    noise, seen, wrong = (calibration.figures[name].value for name in names)
    return [
        f"This machine is {calibration.noise_class}: equal runs spread by {noise:.1%}, so 10 runs on each "
        f"side can detect {seen:.1%}; equal runs were called different in {wrong:.1%} of the splits "
        f"(calibrated {calibration.taken_at:%Y-%m-%d})."
    ]


def _overall(contrasts: Sequence[Contrast], pairs: int) -> tuple[Conclusion, str]:
    headlines = [one for one in contrasts if one.role == "headline"]
    if not headlines:
        return Conclusion.INSUFFICIENT, "The two sides have no metric in common."
    counts = Counter(one.conclusion for one in headlines)
    worst = next(one for one in _ORDER if counts[one])
    if pairs > 1:
        told = ", ".join(f"{counts[one]} {_IN_WORDS[one]}" for one in _ORDER if counts[one])
        return worst, f"Headline metrics of {pairs} compared pairs of jobs: {told}."
    groups = [(one, [each for each in headlines if each.conclusion is one]) for one in _ORDER if counts[one]]
    return worst, " ".join(f"{_IN_WORDS[one].capitalize()}: {_name_changes(one, group)}." for one, group in groups)


def _name_changes(conclusion: Conclusion, group: Sequence[Contrast]) -> str:
    """Return the metrics of a group, and what became of each; of many only the first."""
    named = [_name_change(conclusion, one) for one in group[:_NAMED]]
    return ", ".join([*named, *([f"{len(group) - _NAMED} more"] if len(group) > _NAMED else [])])


def _name_change(conclusion: Conclusion, one: Contrast) -> str:
    if one.effect is None or conclusion is Conclusion.EQUIVALENT:
        return metric_title(one.key)
    return f"{metric_title(one.key)} {one.effect.change} {one.effect.interval}".strip()
