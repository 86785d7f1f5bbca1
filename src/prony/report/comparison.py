"""Format the rows and sentences of a comparison for every output format."""

from __future__ import annotations

from dataclasses import dataclass

from prony.model.comparison import OWN_RULE, Comparison, Conclusion, Contrast, Difference, Match
from prony.model.estimate import Estimate
from prony.ports.metric_titles import metric_title
from prony.report import number

HEADINGS = ("metric", "baseline", "candidate", "change", "interval", "p", "runs", "conclusion")
SYMBOLS = {
    Conclusion.REGRESSION: "▼",
    Conclusion.IMPROVEMENT: "▲",
    Conclusion.EQUIVALENT: "=",
    Conclusion.INCONCLUSIVE: "?",
    Conclusion.INSUFFICIENT: "–",
    Conclusion.DIFFERENT: "≠",
    Conclusion.WITHIN: "=",
}
ASCII_SYMBOLS = SYMBOLS | {Conclusion.REGRESSION: "v", Conclusion.IMPROVEMENT: "^", Conclusion.INSUFFICIENT: "-",
                           Conclusion.DIFFERENT: "#"}  # fmt: skip


@dataclass(frozen=True)
class ComparisonLine:
    """One contrast as texts, in the order of HEADINGS but without its mark."""

    contrast: Contrast
    cells: tuple[str, ...]


def title(comparison: Comparison) -> str:
    others = ", ".join(comparison.candidates)
    return f"{others} against {comparison.baseline}" if others else f"inside {comparison.baseline}"


def lines(match: Match, *, supporting: bool = True) -> list[ComparisonLine]:
    wanted = [one for one in match.contrasts if supporting or one.role == "headline"]
    return [ComparisonLine(one, _cells(one)) for one in wanted]


def heads(comparison: Comparison) -> list[str]:
    """Return the sentences of the headlines, the gravest first."""
    order = list(SYMBOLS)
    ranked = sorted(comparison.headlines, key=lambda one: order.index(one.conclusion))
    return list(dict.fromkeys(one.sentence for one in ranked))


def unlike(comparison: Comparison, *, allowed: bool) -> list[Difference]:
    """Return what differs in any pair, each thing once."""
    found = [one for match in comparison.matches for one in match.differences if one.allowed is allowed]
    return list(dict.fromkeys(found))


def method(comparison: Comparison) -> str:
    """Say how it was decided."""
    terms, effects = comparison.terms, [one.effect for one in comparison.headlines if one.effect is not None]
    if terms.rule != OWN_RULE:
        return f"Fixed limits of {terms.rule}: one number against one, without a test."
    used = "; or ".join(dict.fromkeys(one.method for one in effects)) or "nothing could be tested"
    return (
        f"Each run counts as one number; requests of several runs are never pooled. How: {used}. Level of one test "
        f"{number.format_share(terms.level)}; a change below {number.format_share(terms.threshold)} does not matter; "
        "with several metrics, the false discovery rate is controlled (Benjamini and Hochberg)."
    )


def difference_text(one: Difference) -> str:
    return f"{one.path}: {one.baseline} → {one.candidate}"


def _cells(one: Contrast) -> tuple[str, ...]:
    effect = one.effect
    name = metric_title(one.key) if one.role == "headline" else f"  {metric_title(one.key)}"
    values = (name, _value(one.baseline), _value(one.candidate))
    if effect is None:
        return (*values, number.DASH, "", number.DASH, number.DASH)
    runs = f"{effect.runs[0]}, {effect.runs[1]}" if any(effect.runs) else number.DASH
    return (*values, effect.change, effect.interval, effect.chance or number.DASH, runs)


def _value(estimate: Estimate | None) -> str:
    return number.DASH if estimate is None else number.format_observed(estimate.value, estimate.unit, 4)
