"""Say in a sentence which of several jobs is the fastest, as far as a comparison allows it."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.comparison import Comparison, Conclusion, Contrast, Effect, Match
from prony.model.estimate import Grade
from prony.report import number
from prony.report.findings import join_names


def describe_winner(comparison: Comparison) -> str:
    """Return the sentence of a comparison that holds one job against others, by its first headline.

    Where the first is not the fastest, as in a duet, there may be one other only.
    """
    found = [(match, one) for match in comparison.matches if (one := _headline(match)) is not None]
    if not found:
        return "No winner: nothing could be compared."
    for match, one in found:
        if one.conclusion is Conclusion.INSUFFICIENT:
            return f"No winner: {_why_open(match, one)}"
    return _of_two(*found[0]) if len(found) == 1 else _of_several(found)


def _why_open(match: Match, one: Contrast) -> str:
    named = zip(_names(match), (match.baseline, match.candidate), strict=True)
    void = [name for name, side in named if side.verdict.grade is Grade.VOID]
    if void:
        return f"{join_names(void)} {'is' if len(void) == 1 else 'are'} void, for the reasons above."
    return one.sentence


def _headline(match: Match) -> Contrast | None:
    return next((one for one in match.contrasts if one.role == "headline"), None)


def _of_two(match: Match, one: Contrast) -> str:
    first, second = _names(match)
    effect = one.effect
    if effect is None or one.conclusion not in (Conclusion.REGRESSION, Conclusion.IMPROVEMENT):
        return _of_open(first, [second], [one])
    if one.conclusion is Conclusion.REGRESSION:
        return f"{first} is faster than {second}, which takes {_times(effect)} as long{_sureness(effect)}."
    return f"{second} is faster than {first}, which takes {_times(_invert(effect))} as long{_sureness(effect)}."


def _of_several(found: Sequence[tuple[Match, Contrast]]) -> str:
    best = _names(found[0][0])[0]
    others = [(_names(match)[1], one) for match, one in found]
    tied = [(name, one) for name, one in others if one.conclusion is not Conclusion.REGRESSION]
    if tied:
        return _of_open(best, [name for name, _ in tied], [one for _, one in tied])
    ranked = sorted(
        ((one.effect, name) for name, one in others if one.effect is not None), key=lambda pair: pair[0].value
    )
    effect, second = ranked[0]
    return f"{best} is the fastest; the next, {second}, takes {_times(effect)} as long{_sureness(effect)}."


def _of_open(first: str, others: Sequence[str], contrasts: Sequence[Contrast]) -> str:
    together = join_names([first, *others])
    if all(one.conclusion is Conclusion.EQUIVALENT for one in contrasts):
        return f"{together} are equally fast: the difference is too small to matter."
    more = max((one.more_runs or 0 for one in contrasts), default=0)
    settle = f"; about {more} more runs of each would decide it" if more else ""
    return f"{together} are not distinguishable with these runs{settle}."


def _names(match: Match) -> tuple[str, str]:
    """Return what tells the two jobs apart, as somebody would call them."""
    first, second = match.baseline.cell, match.candidate.cell
    paths = [path for path in dict.fromkeys((*first, *second)) if first.get(path) != second.get(path)]
    if not paths:
        return match.baseline.title, match.candidate.title
    return " · ".join(str(first.get(path)) for path in paths), " · ".join(str(second.get(path)) for path in paths)


def _invert(effect: Effect) -> Effect:
    """Return how the baseline stands against the candidate."""
    low = None if effect.high is None else 1 / effect.high
    high = None if effect.low is None else 1 / effect.low
    return effect.model_copy(update={"value": 1 / effect.value, "low": low, "high": high})


def _times(effect: Effect) -> str:
    return number.format_times(effect.value, effect.low, effect.high)


def _sureness(effect: Effect) -> str:
    told = [] if effect.confidence is None else [f"{number.format_share(effect.confidence)} interval"]
    told += [f"p = {effect.chance}" if effect.chance[:1].isdigit() else f"p {effect.chance}"] if effect.chance else []
    told += [f"{effect.runs[0]} and {effect.runs[1]} runs"] if any(effect.runs) else []
    return f" ({', '.join(told)})" if told else ""
