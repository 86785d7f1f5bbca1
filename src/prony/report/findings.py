"""State an experiment's findings in plain sentences, claimed only where intervals do not overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prony.model.estimate import Estimate, Grade, metric_in
from prony.model.experiment_data import AnalysedExperiment, Entry, ExperimentData
from prony.model.sweep import SweepReport
from prony.ports.workload import shown_kind
from prony.report import compare, cost_tables, entry_fields, history_tables, number, sweep_tables
from prony.report.comparison import heads
from prony.report.gate_tables import sentences

_MOST_SINGLES = 6


def findings(data: ExperimentData, *, gates: bool = True) -> list[str]:
    """Return the sentences in the order in which a reader needs them; the same data give the same text.

    Without `gates` where they stand beside it already.
    """
    analysis, groups = AnalysedExperiment.of(data), compare.peers(data.entries)
    told = [*(sentences(data.gates) if gates else ()), _overview(data)]
    told += history_tables.sentences(analysis.histories, analysis.experiment.id)
    if analysis.comparison is not None:
        told += heads(analysis.comparison)
    else:  # sides that took turns are judged pair by pair, which sees more than whether two intervals overlap
        for group in groups:
            told += _of_group(group, alone=len(groups) == 1)
    told += _singles(groups)
    told += _void(analysis)
    told += _precisions(groups)
    for kind in dict.fromkeys(entry.job.workload.kind for entry in data.entries):
        mine = [entry for entry in data.entries if entry.job.workload.kind == kind]
        told += shown_kind(kind).report.findings(mine)
    told += _sweep(data.sweep)
    told += cost_tables.sentences(analysis)
    told += analysis.untold
    told += [_describe_failure(entry) for entry in data.entries if entry_fields.has_failed(entry)]
    return told


def _sweep(found: SweepReport | None) -> list[str]:
    curves = found.curves if found is not None else ()
    return [f"{curve.title}: {claim.text}" if curve.title else claim.text
            for curve in curves for _, claim in sweep_tables.claims(curve)] + [
            text for curve in curves for text in sweep_tables.limits_of_levels(curve)[-1:]]  # fmt: skip


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
    return f"{ended} of {_jobs(len(entries))} gave numbers on {devices}. Verdicts: {verdicts}.{tail}"


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
    ours = next(found for found, one in timed if one is best)
    others = sorted(((found, one) for found, one in timed if one is not best), key=lambda pair: pair[0].value)
    name = entry_fields.label(best, skip)
    where = "" if alone else _work(best)
    claim = _claim(
        name, ours, [(found, entry_fields.label(one, skip)) for found, one in others], best.job.workload.sample_noun
    )
    return [where + claim + _care([best, *(one for _, one in others)], skip)]


def _work(entry: Entry) -> str:
    work = entry.job.workload
    return f"For {work.subject}{work.variant}, "


def _claim(name: str, ours: Estimate, others: list[tuple[Estimate, str]], thing: str) -> str:
    """Return the one honest sentence on the fastest of a group."""
    ratios = [(compare.ratio_to_first(ours, found), label) for found, label in others]
    tied = [label for ratio, label in ratios if ratio.relation == "overlap"]
    if any(ratio.relation == "unknown" for ratio, _ in ratios):
        return f"{name} has the lowest median, {number.format_number(ours)}; without intervals there is no winner."
    if tied:
        together = f"{name} and {join_names(tied)} are not distinguishable: their intervals overlap"
        return f"{together} (the lowest median is {number.format_number(ours)}, of {name})."
    ratio, second = ratios[0]
    ends = "" if ratio.low is None or ratio.high is None else _ends(ratio.low, ratio.high)
    return (
        f"{name} is the fastest: {number.format_number(ours)} for one {thing} at the median. "
        f"The next, {second}, takes {number.format_ratio(ratio.value)} as long{ends}."
    )


def _ends(low: float, high: float) -> str:
    return f" (from {number.format_ratio(low)} to {number.format_ratio(high)} from the ends of both intervals)"


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
    return [f"Different precisions: {', '.join(parts)}. A faster result may be less accurate; see the output checks."]


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
    why = entry_fields.failure_text(found[0][1]) if found else "no reason was recorded"
    return entry_fields.end_sentence(f"{entry_fields.label(entry)} failed {why}")
