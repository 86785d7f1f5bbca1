"""State the knee, the throughput limit and the highest load within the SLO of one curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from prony.analyse.estimates import across_runs
from prony.analyse.sweep.curves import Group
from prony.analyse.wording import ends, plain
from prony.model.estimate import Estimate
from prony.model.sweep import Claim, Level, LimitState
from prony.stats.knee import FEWEST_LEVELS, Knee, find_knee

# More load brings hardly more where it brings less than this share of what it brought at first.
GAIN_SHARE = 0.2
# What lies no further below the best belongs to the same plateau.
_PLATEAU = 0.05
THROUGHPUT = "throughput_per_s.p50"


def knee_claim(groups: Sequence[Group], noun: str) -> tuple[Claim, Knee | None]:
    """Return where throughput stops growing with load, and the fit behind it."""
    counted = [group for group in groups if group.counting_jobs]
    if len(counted) < FEWEST_LEVELS:
        left_out = [f"{group.level:g}" for group in groups if not group.counting_jobs]
        take = "takes no part" if len(left_out) == 1 else "take no part"
        absent = f" ({', '.join(left_out)} {take}: {_why_not(groups)})" if left_out else ""
        there = f"in {_levels(len(counted))}" if counted else "where no level may be quoted"
        text = (
            f"A knee is not looked for {there}{absent}: {FEWEST_LEVELS} levels are needed, for of three the one in "
            "the middle always looks like a knee."
        )
        return Claim(state="refused", text=text), None
    found = find_knee([group.level for group in counted], [group.values(THROUGHPUT) for group in counted], GAIN_SHARE)
    if found is None:
        text = "A knee is not looked for where no level has two runs: nothing says how far runs lie apart. "
        return Claim(state="refused", text=text + "Use load.repeats: 3 or more."), None
    return _knee_text(found, counted, noun), found


def _knee_text(found: Knee, counted: Sequence[Group], noun: str) -> Claim:
    lowest, highest = counted[0].level, counted[-1].level
    if found.state == "bends" and found.at is not None:
        runs = sum(len(group.values(THROUGHPUT)) for group in counted)
        estimate = Estimate(
            value=found.at, unit="1", low=found.low, high=found.high, confidence=0.95, count=runs,
            method="two straight pieces through the runs of all levels; profile of their misfit",
        )  # fmt: skip
        between = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
        text = (
            f"Beyond {found.at:.3g}{between} {noun} more load brings hardly more: {_remains(found)} of what it brought "
            f"before, below the {GAIN_SHARE:.0%} at which a knee is claimed ({runs} runs at {_levels(len(counted))})."
        )
        return Claim(state="found", estimate=estimate, text=text)
    if found.state == "flat":
        text = (
            f"Throughput does not grow from {lowest:g} to {highest:g} {noun}: the knee lies at {_at(lowest, noun)} or "
            "below. Lower levels would show it."
        )
        return Claim(state="found", text=text)
    if found.state == "grows":
        text = (
            f"No saturation found up to {highest:g} {noun}: the last levels still bring {_remains(found)} of what the "
            f"first brought, more than the {GAIN_SHARE:.0%} below which a knee is claimed. Higher levels may show one."
        )
        return Claim(state="not found", text=text)
    text = (
        f"Whether throughput stops growing below {highest:g} {noun} cannot be told: the runs of a level lie too far "
        "apart, or too few levels stand beside the bend. More runs (load.repeats) or more levels would settle it."
    )
    return Claim(state="cannot tell", text=text)


def of_the_client(knee: Claim, levels: Sequence[Level], noun: str) -> str:
    """Say of a knee that it is the client's, where the client was the limit at every level from there on; else ''."""
    begin = 0.0 if knee.estimate is None or knee.estimate.low is None else knee.estimate.low
    beyond = [level for level in levels if level.load >= begin and not level.excluded]
    if knee.state != "found" or not beyond or not all(_is_of_the_client(level) for level in beyond):
        return ""
    at = ", ".join(f"{level.load:g}" for level in beyond)
    return f" It is the client's limit and not the server's: at {at} {noun} the client could not send more."


def _is_of_the_client(level: Level) -> bool:
    return level.bottleneck is not None and level.bottleneck.where == "client"


def _remains(found: Knee) -> str:
    if found.remains is None:
        return "too little to be told"
    if found.remains_low is None or found.remains_high is None:
        return f"{found.remains:.1%}"
    return f"{found.remains:.1%} [{found.remains_low:.1%}, {found.remains_high:.1%}]"


def limit_claim(groups: Sequence[Group], knee: Claim, noun: str) -> Claim:
    """Return the most that goes through; it is a limit only where a knee was found."""
    counted = [group for group in groups if group.counting_jobs]
    shown = [(one, group) for group in counted if (one := group.estimate(THROUGHPUT)) is not None]
    if not shown:
        return Claim(state="refused", text="No level has a throughput that may be quoted.")
    best, at = max(shown, key=lambda pair: pair[0].value)
    if knee.state != "found":
        text = f"The most that went through is {_rate(best)}, at {_at(at.level, noun)}; without a knee it is no limit."
        return Claim(state="not found", estimate=best, text=text)
    begin = 0.0 if knee.estimate is None or knee.estimate.low is None else knee.estimate.low
    alike = [(one, group) for one, group in shown if group.level >= begin and _meets(one, best)]
    plateau = across_runs(np.array([value for _, group in alike for value in group.values(THROUGHPUT)]), "1/s", "runs")
    levels = ", ".join(f"{group.level:g}" for _, group in alike)
    text = f"At most {_rate(plateau)} goes through: {plateau.method} at {levels} {noun}."
    last, highest = shown[-1]
    if last.high is not None and plateau.low is not None and last.high < plateau.low:
        text += f" At {highest.level:g} {noun} it falls to {_rate(last)}."
    return Claim(state="found", estimate=plateau, text=text)


def _meets(one: Estimate, best: Estimate) -> bool:
    """Is it of the plateau? What lies a little lower is: to take only those that overlap the best would flatter it."""
    if one.value >= (1 - _PLATEAU) * best.value:
        return True
    return one.high is not None and best.low is not None and one.high >= best.low


def slo_claim(levels: Sequence[Level], slo: Mapping[str, float], noun: str) -> Claim | None:
    """Return the highest load up to which every level held every limit: none is skipped."""
    if not any("." in key for key in slo):
        return None
    held: Level | None = None
    for level in levels:
        states = {check.state for check in level.checks}
        if level.excluded or LimitState.VIOLATED in states or LimitState.CANNOT_TELL in states:
            return _slo_text(held, level, noun)
        held = level
    if held is None:
        return Claim(state="refused", text="There is no level to judge.")
    text = f"Every level holds the SLO, up to {held.load:g} {noun}: {_checks(held)}. The limit lies higher."
    return Claim(state="found", estimate=_load(held, None), text=text)


def _slo_text(held: Level | None, broken: Level, noun: str) -> Claim:
    is_violated = any(check.state is LimitState.VIOLATED for check in broken.checks) and not broken.excluded
    bad = [check for check in broken.checks if check.state is not LimitState.HELD]
    why = broken.excluded or "; ".join(check.text for check in bad)
    beyond = f"{_at(broken.load, noun)} {'is too much' if is_violated else 'cannot be judged'}: {why.rstrip('.')}."
    if held is None:
        if is_violated:
            return Claim(state="not found", text=f"No level holds the SLO: already {beyond}")
        return Claim(state="cannot tell", text=f"Whether the lowest level holds the SLO cannot be told: {beyond}")
    text = f"{_at(held.load, noun)} is the highest load that holds the SLO ({_checks(held)}); {beyond}"
    return Claim(state="found", estimate=_load(held, broken if is_violated else None), text=text)


def _load(held: Level, broken: Level | None) -> Estimate:
    count = held.throughput.count if held.throughput is not None else 1
    return Estimate(
        value=held.load, unit="1", low=held.load if broken else None, high=broken.load if broken else None,
        count=count, method="highest level that held with all below it; up to the lowest that did not",
    )  # fmt: skip


def _checks(level: Level) -> str:
    return "; ".join(check.text for check in level.checks)


def _why_not(groups: Sequence[Group]) -> str:
    return next(group.jobs[0].exclusion for group in groups if not group.counting_jobs).rstrip(".")


def _rate(one: Estimate) -> str:
    return f"{plain(one.value)}{ends(one)} a second"


def _at(level: float, noun: str) -> str:
    return f"{level:g} {noun.removesuffix('s') if level == 1 and noun == 'users' else noun}"


def _levels(count: int) -> str:
    return f"{count} level{'' if count == 1 else 's'}"
