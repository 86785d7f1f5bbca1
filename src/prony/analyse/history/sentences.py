"""Describe a change in a history, and the state of a series, in English sentences."""

from __future__ import annotations

from prony.analyse.history.detect import Rules
from prony.analyse.wording import plain
from prony.model.history import Change, ChangeState, History, Level, SeriesState

# What runs that were made to decide it added to how a change was found: it stays when the series is judged again.
BY_RUNS = ("side by side", "repeated", "confirming runs")
_VERBS = {"regression": "got worse", "improvement": "got better", "drift": "drifts", "environment": "changed"}

_ANSWERS = {
    ChangeState.CONFIRMED: "Runs made for it confirm it",
    ChangeState.REJECTED: "Runs made for it say no",
    ChangeState.ACKNOWLEDGED: "It is known and acknowledged",
}


def change_sentence(change: Change) -> str:
    size = f"{change.effect:+.1%}"
    if change.low is not None and change.high is not None:
        size += f" [{change.low:+.1%}, {change.high:+.1%}]"
    sure = "one result alone" if change.p is None else f"p = {change.p:.2g}"
    about = f"{change.metric} of {change.title} on {change.machine} {_verb(change)} by {size}"
    levels = f"{_level(change.before)} -> {_level(change.after)} {change.unit}"
    runs = f"{change.before.runs} results before and {change.after.runs} after"
    parts = [f"{about} from job {change.job_id} on: {levels}, {runs}, {sure}."]
    if change.kind == "environment":
        parts.append("The machine changed there, so the code is not blamed.")
    if change.facts:
        parts.append(f"What else changed: {'; '.join(change.facts)}.")
    return " ".join([*parts, change.settle]).strip()


def restate_change(change: Change) -> Change:
    """Return a change that was decided since it was told of, with what is said of it now."""
    if change.state not in _ANSWERS:
        return change
    by_runs = [step for step in change.path if step.startswith(BY_RUNS[:2])]
    settled = change.model_copy(update={"settle": f"{_ANSWERS[change.state]}{': ' + by_runs[-1] if by_runs else ''}."})
    return settled.model_copy(update={"sentence": change_sentence(settled)})


def settle_text(change: Change, *, seen_before: bool = False) -> str:
    """Say what would change the verdict."""
    if seen_before:
        return "The series was at this level before and left it: runs of both versions side by side would tell which."
    if change.state is ChangeState.SUSPECT:
        return "Runs of both versions side by side, or a few more results, would settle it."
    if change.kind == "drift":
        return "No single result began it: look at what grows on this machine, or at many small changes."
    return ""


def history_sentence(history: History) -> str:
    """Say how a series stands."""
    series = history.series
    if not history.points:
        return f"{series.title} has no results yet."
    if series.state is SeriesState.LEARNING:
        told = f"{series.title} on {series.machine} is learning ({series.learned}/{series.wanted} results)."
        return f"{told} {series.note}".strip()
    open_changes = [change for change in history.changes if change.state in (ChangeState.FOUND, ChangeState.CONFIRMED)]
    if open_changes and series.state is not SeriesState.STEADY:
        return open_changes[-1].sentence
    if series.state is SeriesState.SUSPECT and history.changes:
        return history.changes[-1].sentence
    level = history.segments[-1].level if history.segments else None
    where = f" at {_level(level)} {history.unit}" if level is not None else ""
    return f"{history.metric} of {series.title} on {series.machine} is steady{where}, {series.runs} results."


def rules_sentence(rules: Rules) -> str:
    """Say how a history is judged."""
    return (
        f"A result is judged against the last {rules.window} of its series, one number a result on a logarithmic "
        f"scale: a permutation test over every place where the level may have changed, at a level of {rules.alpha:.1%} "
        f"a result. Changes below {rules.least:.0%} are not told; at {rules.suspicion:.0%} one is a suspect. The first "
        f"{rules.learning} results of a series, and {rules.relearning} after a change, are for learning only. The "
        "levels in the picture are found with hindsight."
    )


def _verb(change: Change) -> str:
    if change.state is ChangeState.SUSPECT:
        return f"may have {_VERBS[change.kind]}"
    return f"seemed to have {_VERBS[change.kind]}" if change.state is ChangeState.REJECTED else _VERBS[change.kind]


def _level(level: Level) -> str:
    if level.low is None or level.high is None:
        return plain(level.median)
    return f"{plain(level.median)} [{plain(level.low)}, {plain(level.high)}]"
