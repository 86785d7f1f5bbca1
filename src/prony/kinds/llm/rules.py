"""Rules on a language model: was anything faster than the hardware can be, and does it still say the same?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prony.analyse import rules
from prony.analyse.canaries import check_canary
from prony.analyse.verdict import Evidence, Rule, note, percent, suspect, verdict_of, void
from prony.model.estimate import Reason, Verdict

_ABOVE_PEAK = 1.05
# Mean divergence from the reference, by which a quantisation is told apart from a wrong engine.
GRADES = ((0.002, "same"), (0.02, "close"), (0.1, "visibly different"))
DIFFERENT = "a different answer"


@dataclass(frozen=True)
class LlmEvidence(Evidence):
    """`headlines` has one number for each run."""

    headlines: tuple[float, ...] = ()

    @property
    def numbers(self) -> list[float]:
        return list(self.headlines)


def grade_divergence(kl_mean: float) -> str:
    """Return in words how far predictions are from the reference's."""
    return next((word for most, word in GRADES if kl_mean < most), DIFFERENT)


def check_shares(evidence: LlmEvidence) -> Iterator[Reason]:
    """What uses more than all of the hardware was not measured to its end."""
    for name, what in (("mbu", "memory bandwidth"), ("mfu", "arithmetic")):
        found = evidence.estimates.get(f"{name}.p50")
        if found is not None and found.value > _ABOVE_PEAK:
            yield void(
                "above_peak",
                f"Impossible: this would need {percent(found.value)} of the GPU's published {what}. Use another "
                "version of the engine, and measure again.",
            )


def check_predictions(evidence: LlmEvidence) -> Iterator[Reason]:
    """Say how far the predictions are from the reference's."""
    found = evidence.estimates.get("kl_nat.mean")
    if found is None:
        effective = evidence.result.effective
        said = effective.details.get("reference", "") if effective is not None else ""
        if said.startswith("none"):
            yield note(
                "no_reference", f"Its predictions were not compared with a reference: {said.partition(': ')[2]}."
            )
        return
    word = grade_divergence(found.value)
    said = f"Its predictions differ from the reference by {found.value:.2g} nat on average (KL divergence): {word}."
    yield suspect("different_answer", said) if word == DIFFERENT else note("predictions", said)


_RULES: tuple[Rule, ...] = (
    rules.nothing_measured, rules.check_contamination, rules.check_watch, rules.check_counters, check_canary,
    rules.failed_repetitions, rules.partial_result, rules.few_runs, rules.wide_interval, rules.check_throttling,
    rules.missing_intervals, rules.until_reached, rules.blind,
)  # fmt: skip


def judge_llm(evidence: LlmEvidence) -> Verdict:
    """Return the verdict on one configuration."""
    own = [reason for rule in (check_shares, check_predictions) for reason in rule(evidence)]
    return verdict_of([*own, *(reason for rule in _RULES for reason in rule(evidence))])
