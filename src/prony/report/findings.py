"""State an experiment's findings in plain sentences, claimed only where intervals do not overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prony.model.estimate import Grade, metric_in
from prony.model.experiment_data import AnalysedExperiment, Entry, ExperimentData
from prony.model.sweep import SweepReport
from prony.ports.metric_titles import metric_title
from prony.ports.workload import shown_kind
from prony.report import compare, cost_tables, entry_fields, history_tables, number, sweep_tables
from prony.report.comparison import heads
from prony.report.gate_tables import sentences

_MOST_SINGLES = 6
_MOST_ANSWERS = 4


def findings(data: ExperimentData, *, gates: bool = True) -> list[str]:
    """Return the sentences in the order in which a reader needs them; the same data give the same text.

    Without `gates` where they stand beside it already.
    """
    analysis, groups = AnalysedExperiment.of(data), compare.peers(data.entries)
    told = [*(sentences(data.gates) if gates else ()), _overview(data)]
    told += history_tables.sentences(analysis.histories, analysis.experiment.id)
    told += _rankings(analysis, groups)
    told += _singles(groups)
    told += _void(analysis)
    told += _precisions(groups)
    for kind, mine in _by_kind(data.entries).items():
        told += shown_kind(kind).report.findings(mine)
    told += _sweep(data.sweep)
    told += cost_tables.sentences(analysis)
    told += analysis.untold
    told += [_describe_failure(entry) for entry in data.entries if entry_fields.has_failed(entry)]
    return told


def answers(data: ExperimentData) -> list[str]:
    """Return the few sentences that answer what the experiment asked, such as which job is the fastest."""
    analysis, groups = AnalysedExperiment.of(data), compare.peers(data.entries)
    claims = _sweep_claims(_usable(data.sweep)) or _rankings(analysis, groups)
    for kind, mine in _by_kind(data.entries).items():
        claims += shown_kind(kind).report.answers(mine)
    return (claims or _singles(groups) or _readings(data.entries))[:_MOST_ANSWERS]


def _by_kind(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.job.workload.kind, []).append(entry)
    return found


def _usable(found: SweepReport | None) -> SweepReport | None:
    """Return the curves with a level that takes part in claims: of the others only the reason could be said."""
    if found is None:
        return None
    curves = tuple(curve for curve in found.curves if any(not level.excluded for level in curve.levels))
    return found.model_copy(update={"curves": curves})


def _readings(entries: Sequence[Entry]) -> list[str]:
    """Return the headline of each job whose kind cannot say which jobs do the same work."""
    told = []
    for entry in entries:
        found = compare.quotable(entry)
        if found is not None:
            title, value = metric_title(entry_fields.headline(entry)), number.format_number(found)
            told.append(f"{entry_fields.label(entry)}: {title} is {value}.{_care([entry], set())}")
    return told


def _rankings(analysis: AnalysedExperiment, groups: Sequence[Sequence[Entry]]) -> list[str]:
    """Return which is the fastest of each group of jobs that do the same work."""
    if analysis.comparison is not None:
        # Sides that took turns are judged pair by pair, which sees more than whether two intervals overlap.
        return heads(analysis.comparison)
    return [sentence for group in groups for sentence in _of_group(group, alone=len(groups) == 1)]


def _sweep(found: SweepReport | None) -> list[str]:
    curves = found.curves if found is not None else ()
    return _sweep_claims(found) + [text for curve in curves for text in sweep_tables.limits_of_levels(curve)[-1:]]


def _sweep_claims(found: SweepReport | None) -> list[str]:
    curves = found.curves if found is not None else ()
    return [f"{curve.title}: {claim.text}" if curve.title else claim.text
            for curve in curves for _, claim in sweep_tables.claims(curve)]  # fmt: skip


def _overview(data: ExperimentData) -> str:
    entries, planned = data.entries, data.experiment.job_count
    if not entries:
        return "No job has a result yet, so there is nothing to report."
    ended = sum(not entry_fields.has_failed(entry) for entry in entries)
    graded = Counter(entry.summary.verdict.grade for entry in entries)
    verdicts = ", ".join(f"{graded[grade]} {grade}" for grade in Grade if graded[grade])
    devices = ", ".join(dict.fromkeys(entry.environment.device.name for entry in entries))
    absent = planned - len(entries)
    tail = f" {absent} of the {_jobs(planned)} planned {_be(absent)} no result." if absent > 0 else ""
    return f"{ended} of {_jobs(len(entries))} on {devices} gave numbers. Verdicts: {verdicts}.{tail}"


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def _be(count: int) -> str:
    return "has" if count == 1 else "have"


def _of_group(group: Sequence[Entry], *, alone: bool) -> list[str]:
    best = compare.fastest(group)
    timed = [(found, one) for one in group if (found := compare.quotable(one)) is not None]
    if best is None or len(timed) < 2:
        return []
    skip = {path for path in best.job.cell if path not in entry_fields.varying([one for _, one in timed])}
    is_rate = compare.better(best) == "higher"
    ours = next(found for found, one in timed if one is best)
    others = [(compare.ratio_to_first(ours, found, is_rate=is_rate), one) for found, one in timed if one is not best]
    others.sort(key=lambda pair: pair[0].value)
    name = entry_fields.label(best, skip)
    ranked = [(ratio, entry_fields.label(one, skip)) for ratio, one in others]
    noun = "" if is_rate else f" for one {best.job.workload.sample_noun}"
    claim = _claim(name, number.format_number(ours) + noun, ranked)
    agree = _agreement(best, others[0][1]) if others[0][0].relation == "slower" else ""
    where = "" if alone else _work(best)
    return [where + claim + agree + _care([best, *(one for _, one in others)], skip)]


def _agreement(best: Entry, second: Entry) -> str:
    """Return how far the outputs of two jobs are from the reference, where both were held against it."""
    checks = [one.result.check for one in (best, second)]
    errors = [one.max_error_of_range for one in checks if one is not None and not one.is_reference]
    known = [error for error in errors if error is not None]
    if None in checks or not known or len(known) < len(errors):
        return ""
    return f" Their outputs agree to {number.format_share(max(known))} of their range."


def _work(entry: Entry) -> str:
    work = entry.job.workload
    return f"For {work.subject}{work.variant}, "


def _claim(name: str, value: str, ranked: Sequence[tuple[compare.Ratio, str]]) -> str:
    """Return the one honest sentence on the fastest of a group; `ranked` are the others, the next one first."""
    tied = [label for ratio, label in ranked if ratio.relation == "overlap"]
    if any(ratio.relation == "unknown" for ratio, _ in ranked):
        return f"{name} has the best median, {value}; without intervals there is no winner."
    if tied:
        together = f"{name} and {join_names(tied)} are not distinguishable: their intervals overlap"
        return f"{together} (the best median is {value}, of {name})."
    ratio, second = ranked[0]
    return f"{name} is the fastest: {value} at the median. It is {_times(ratio)} as fast as {second}."


def _times(ratio: compare.Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return number.format_ratio(ratio.value)
    times, ends = number.format_ratio_with_ends(ratio.value, ratio.low, ratio.high)
    return f"{times} ({ends}, by the ends of both intervals)"


def _void(analysis: AnalysedExperiment) -> list[str]:
    """Return whose numbers exist and may not be quoted; a failed job has a sentence of its own."""
    void = [
        one for one in analysis.entries if one.summary.verdict.grade is Grade.VOID and not entry_fields.has_failed(one)
    ]
    if not void:
        return []
    names = join_names([entry_fields.label(one) for one in void])
    verb = "is" if len(void) == 1 else "are"
    if analysis.comparison is not None:
        return [f"{names} {verb} void: do not use these numbers alone. The sides ran alternately, so a "
                "disturbance affects both, and they are still compared with each other."]  # fmt: skip
    spared = any(reason.code == "spared" for one in void for reason in one.summary.verdict.reasons)
    which = "times, rates, power and memory" if spared else "these numbers"
    return [f"{names} {verb} void: {which} are excluded from comparisons."]


def _precisions(groups: Sequence[Sequence[Entry]]) -> list[str]:
    """Return what forbids taking a comparison at face value: jobs of one group that compute in another precision."""
    by_precision: dict[str, dict[str, None]] = {}
    for group in groups:
        told = [(one.job.workload.tool, one.result.effective.precision) for one in group if one.result.effective]
        if len({precision for _, precision in told}) > 1:
            for engine, precision in told:
                by_precision.setdefault(precision, {})[engine] = None
    if not by_precision:
        return []
    parts = [f"{join_names(list(engines))} in {precision}" for precision, engines in by_precision.items()]
    is_checked = any(one.result.check is not None for group in groups for one in group)
    seen = "; see the output checks" if is_checked else ""
    return [f"Different precisions: {', '.join(parts)}. A faster result may be less accurate{seen}."]


def _care(entries: Sequence[Entry], skip: set[str]) -> str:
    suspects = [entry_fields.label(one, skip) for one in entries if one.summary.verdict.grade is Grade.SUSPECT]
    verb = "is" if len(suspects) == 1 else "are"
    return f" Use with care: {join_names(suspects)} {verb} suspect." if suspects else ""


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence has them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _singles(groups: Sequence[Sequence[Entry]]) -> list[str]:
    """Return one sentence for each job that has no peer to stand against."""
    timed = [[one for one in group if compare.quotable(one) is not None] for group in groups]
    alone = [group[0] for group in timed if len(group) == 1]
    told = []
    for entry in alone[:_MOST_SINGLES]:
        found = entry_fields.find_estimate(entry.summary, entry_fields.headline(entry))
        if found is not None:
            grade = entry.summary.verdict.grade
            care = "" if grade is Grade.VALID else f" Use with care: it is {grade}."
            value, noun = number.format_number(found), entry.job.workload.sample_noun
            is_rate = metric_in(entry.summary, entry_fields.headline(entry) or "").better == "higher"
            does = f"reaches {value}" if is_rate else f"takes {value} for one {noun}"
            told.append(f"{entry_fields.label(entry)} {does} at the median.{care}")
    return told


def _describe_failure(entry: Entry) -> str:
    found = entry_fields.failures(entry)
    why = entry_fields.failure_text(found[0][1], entry.job.id) if found else "no reason was recorded"
    return entry_fields.end_sentence(f"{entry_fields.label(entry)} failed {why}")
