"""Doubt whether a bad number is the program's fault: the machine was disturbed, nobody watched it, or the clients of a
load were the limit.

Such a number is shown as it is and fails no build by itself: the next run would mostly say otherwise. What no such
disturbance explains does fail, because one that takes more than a fifth of the CPU makes a result void.
"""

from __future__ import annotations

import math

from prony.analyse.canaries import machine_change
from prony.analyse.clean_runs import MACHINE_EXPLAINS, worsening_of_clean
from prony.model.comparison import Conclusion, Contrast
from prony.model.estimate import OF_THE_LOAD, OF_THE_MACHINE, Grade, Reason, Summary, metric_in, verdict_on
from prony.model.experiment_data import Entry
from prony.model.metric import is_size
from prony.stats.apart import apart_p

WHAT_TO_DO = "Measure again on a quiet machine, or run both sides alternately (prony duet)"
_TURNS = "Or run both sides alternately (prony duet)"  # after what a load's own reason says to do
_APART = 0.001
_BAD = (Conclusion.REGRESSION, Conclusion.DIFFERENT)


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


def explains(ratio_low: float | None, ratio_high: float | None) -> bool:
    """May a disturbance be all there is to it? Not where the whole interval of the ratio lies far beyond."""
    if ratio_low is None or ratio_high is None:
        return True
    return ratio_low <= MACHINE_EXPLAINS and ratio_high >= 1 / MACHINE_EXPLAINS


def add_doubt(contrast: Contrast, baseline: Entry, candidate: Entry, *, took_turns: bool) -> Contrast:
    """Say of a contrast for the worse whether one of its sides is in doubt. Sides that took turns were disturbed
    alike: there is none."""
    effect = contrast.effect
    if took_turns or contrast.conclusion not in _BAD or effect is None or effect.scale != "ratio":
        return contrast
    if not explains(effect.low, effect.high):
        return contrast
    machine = machine_change(baseline, candidate)
    if machine is not None and machine.changed:
        doubt = f"This alone does not fail the build: {machine.sentence} {WHAT_TO_DO}; --fail-on suspect makes it fail."
        return contrast.model_copy(update={"doubt": doubt, "sentence": f"{contrast.sentence} {doubt}"})
    for name, entry in (("candidate", candidate), ("baseline", baseline)):
        reason = machine_doubt(entry.summary, contrast.key, of_change=True)
        if reason is not None:
            todo = WHAT_TO_DO if reason.code in OF_THE_MACHINE else _TURNS
            doubt = (
                f"This alone does not fail the build, because the {name} is {_word(reason)}: {reason.text} {todo}; "
                "--fail-on suspect makes it fail."
            )
            return contrast.model_copy(update={"doubt": doubt, "sentence": f"{contrast.sentence} {doubt}"})
    return contrast


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
    told = f"{who}: {contrast.key} got worse: {found.text}. Disturbed runs are excluded."
    return contrast.model_copy(update={"conclusion": Conclusion.REGRESSION, "doubt": "", "sentence": told})


def _word(reason: Reason) -> str:
    return "unwatched" if reason.code == "unwatched" else str(reason.grade)
