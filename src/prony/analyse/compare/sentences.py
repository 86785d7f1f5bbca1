"""Describe a contrast in one English sentence."""

from __future__ import annotations

from prony.analyse.compare.conclude import is_significant
from prony.analyse.wording import plain
from prony.model.comparison import Conclusion, Contrast, Effect, chance_text, percent_text
from prony.model.estimate import Estimate


def sentence(contrast: Contrast, title: str, threshold: float, tests: int = 1) -> str:
    """Say it; `tests` is how many decided at once."""
    effect = contrast.effect
    if effect is None:
        return ""
    what = f"{title}: {contrast.key}"
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
            return f"{what} is open, {change}{_from_to(contrast)}; {sure}. {_settling(contrast, threshold)}"


def value_text(estimate: Estimate | None) -> str:
    if estimate is None:
        return "nothing"
    unit = {"1": "", "1/s": "/s"}.get(estimate.unit, estimate.unit)
    return f"{plain(estimate.value)} {unit}".rstrip()


def _from_to(contrast: Contrast) -> str:
    return f" ({value_text(contrast.baseline)} to {value_text(contrast.candidate)})"


def _runs(effect: Effect) -> str:
    noun = "requests" if effect.scale == "difference" else "runs"
    return f"{effect.runs[0]} against {effect.runs[1]} {noun}"


def _chance(effect: Effect, tests: int) -> str:
    if effect.p is None:
        return "untested"
    among = f", {chance_text(effect.q)} among {tests} at once" if effect.q is not None and tests > 1 else ""
    return f"p {_equals(effect.chance)}{among}"


def _equals(chance: str) -> str:
    return chance if chance.startswith("<") else f"= {chance}"


def _settling(contrast: Contrast, threshold: float) -> str:
    effect = contrast.effect
    if effect is None:
        return ""
    if effect.scale == "difference":
        return "More requests would settle it."
    if contrast.more_runs is None:
        noise = percent_text(effect.noise or 0.0)
        return f"Runs vary by {noise}: no number of runs in reason settles it here; take turns on a quieter machine."
    limit = percent_text(threshold)
    begin = "The change is real but may be too small to matter" if is_significant(effect) else (
        f"Neither a change of {limit} nor its absence is shown"
    )  # fmt: skip
    return f"{begin}; about {contrast.more_runs} more runs on each side would settle it."
