"""Doubt whether a change comes from the program: the machine was disturbed, nobody watched it, or the clients of a load
were the limit.

Such a change is shown with its numbers and decides nothing: the next run would mostly say otherwise. What no such
disturbance explains does decide, because one that takes more than a fifth of the CPU makes a result void.
"""

from __future__ import annotations

import math

from prony.analyse.canaries import machine_change
from prony.analyse.clean_runs import MACHINE_EXPLAINS, worsening_of_clean
from prony.model.comparison import Conclusion, Contrast
from prony.model.estimate import OF_THE_LOAD, OF_THE_MACHINE, Grade, Reason, Summary, metric_in, verdict_on
from prony.model.experiment_data import Entry
from prony.model.metric import is_size
from prony.ports.metric_titles import metric_title
from prony.stats.apart import apart_p

_OF_MACHINE = "Measure again on a quiet machine, or run both sides alternately (prony duet)"
_OF_CLIENTS = "Change the load so that its clients are not the limit, or run both sides alternately (prony duet)"
_OF_LENGTH = "Make the load longer, or run both sides alternately (prony duet)"
_APART = 0.001
_BAD = (Conclusion.REGRESSION, Conclusion.DIFFERENT)
# How a sentence tells a change, and how it does where the change is in doubt.
_SEEMS = {
    Conclusion.REGRESSION: ("got worse", "seems worse"),
    Conclusion.IMPROVEMENT: ("got better", "seems better"),
    Conclusion.DIFFERENT: ("differs", "seems to differ"),
}


def machine_doubt(summary: Summary, key: str, *, of_change: bool) -> Reason | None:
    """Return why a number may be the machine's and not the program's, if it may.

    `of_change`: the question is whether the program changed; then a machine that nobody watched is a reason too, and so
    are clients that could not send all that a load asked for.
    """
    if is_size(metric_in(summary, key)):
        return None
    causes = OF_THE_MACHINE | OF_THE_LOAD if of_change else OF_THE_MACHINE
    for one in verdict_on(summary, key).reasons:
        is_doubt = one.grade is not Grade.VALID or (of_change and one.code == "unwatched")
        if one.code in causes and is_doubt:
            return one
    return None


def what_to_do(reason: Reason) -> str:
    """Return what would take a doubt away: the machine may be the cause, or the length or the clients of a load."""
    if reason.code in OF_THE_MACHINE:
        return _OF_MACHINE
    return _OF_LENGTH if reason.code == "too_short" else _OF_CLIENTS


def suspected_cause(reason: Reason) -> str:
    return "the machine" if reason.code in OF_THE_MACHINE else "the load"


def explains(ratio_low: float | None, ratio_high: float | None) -> bool:
    """May a disturbance be all there is to it? Not where the whole interval of the ratio lies far beyond."""
    if ratio_low is None or ratio_high is None:
        return True
    return ratio_low <= MACHINE_EXPLAINS and ratio_high >= 1 / MACHINE_EXPLAINS


def add_doubt(contrast: Contrast, baseline: Entry, candidate: Entry, *, took_turns: bool) -> Contrast:
    """Say of a change whether one of its sides is in doubt. Sides that took turns were disturbed alike: there is none.

    A change that may come from elsewhere than the program is inconclusive, whichever way it goes. Where only nobody
    watched the machine it stays, and fails no build.
    """
    effect = contrast.effect
    if took_turns or contrast.conclusion not in _SEEMS or effect is None or effect.scale != "ratio":
        return contrast
    if not explains(effect.low, effect.high):
        return contrast
    # A slower machine makes nothing larger.
    machine = None if is_size(metric_in(candidate.summary, contrast.key)) else machine_change(baseline, candidate)
    if machine is not None and machine.changed:
        return _leave_open(contrast, f"{machine.sentence} {_OF_MACHINE}", "the machine")
    for name, entry in (("candidate", candidate), ("baseline", baseline)):
        reason = machine_doubt(entry.summary, contrast.key, of_change=True)
        if reason is None:
            continue
        why = f"{_first_sentence(reason.text)} {what_to_do(reason)}"
        if reason.grade is not Grade.VALID:
            return _leave_open(contrast, f"the {name} is {reason.grade}. {why}", suspected_cause(reason))
        if contrast.conclusion in _BAD:
            return _add(contrast, f"This alone does not fail the build, because the {name} is unwatched. {why}")
    return contrast


def _leave_open(contrast: Contrast, why: str, cause: str) -> Contrast:
    said, seems = _SEEMS[contrast.conclusion]
    name = metric_title(contrast.key)
    sentence = contrast.sentence.replace(f"{name} {said}, ", f"{name} {seems}, ", 1)
    update = {"conclusion": Conclusion.INCONCLUSIVE, "apparent": contrast.conclusion, "sentence": sentence}
    open_one = contrast.model_copy(update=update)
    begin = f"{cause[0].upper()}{cause[1:]} may be the cause and not the program"
    return _add(open_one, f"{begin}, so it is inconclusive: {why}")


def _first_sentence(text: str) -> str:
    """Return it alone: the notes of a comparison have the rest, once for all metrics."""
    first, stop, _ = text.partition(". ")
    return f"{first}." if stop else first


def _add(contrast: Contrast, doubt: str) -> Contrast:
    fails = (contrast.apparent or contrast.conclusion) in _BAD
    doubt = f"{doubt}; --fail-on suspect makes it fail." if fails else f"{doubt}."
    return contrast.model_copy(update={"doubt": doubt, "sentence": f"{contrast.sentence} {doubt}"})


def judge_by_clean(contrast: Contrast, baseline: Entry, candidate: Entry, *, tests: int, apart: float) -> Contrast:
    """Let a headline fail by its undisturbed runs, where all of them lie beyond what a busy machine explains.

    `apart` is the spread between whole results, `tests` how many headlines are looked at.
    """
    if contrast.role != "headline" or (contrast.conclusion is Conclusion.REGRESSION and not contrast.doubt):
        return contrast
    if contrast.key in candidate.summary.items:  # what was answered does not depend on the machine
        return contrast
    found = worsening_of_clean(
        contrast.key, (baseline.summary, baseline.result), (candidate.summary, candidate.result)
    )  # fmt: skip
    if found is None or not found.is_plain(tests) or apart_p(math.log(found.least), 0.0, found.runs, apart) >= _APART:
        return contrast
    who = candidate.job.title if candidate.job.title == baseline.job.title else (
        f"{candidate.job.title} against {baseline.job.title}"
    )  # fmt: skip
    told = f"{who}: {metric_title(contrast.key)} got worse: {found.text}. Disturbed runs are excluded."
    update = {"conclusion": Conclusion.REGRESSION, "apparent": None, "doubt": "", "sentence": told}
    return contrast.model_copy(update=update)
