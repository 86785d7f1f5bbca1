"""Rules on a hardware test: is a reading faster than the hardware can be, and what was not measured as it should?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prony.analyse import rules
from prony.analyse.canaries import check_canary
from prony.analyse.peaks import Peak
from prony.analyse.verdict import Evidence, Rule, note, percent, suspect, verdict_of, void
from prony.model.estimate import Reason, Verdict
from prony.ports.metric_titles import metric_title

_ABOVE_PEAK = 1.05


@dataclass(frozen=True)
class HardwareEvidence(Evidence):
    """`headlines` has one number for each run; `peaks` those that are known, by the key of the estimate."""

    headlines: tuple[float, ...] = ()
    peaks: Mapping[str, Peak] = field(default_factory=dict)

    @property
    def numbers(self) -> list[float]:
        return list(self.headlines)


def check_peaks(evidence: HardwareEvidence) -> Iterator[Reason]:
    """What is faster than the hardware can be was not measured to its end."""
    for key, peak in evidence.peaks.items():
        found = evidence.estimates[key]
        share = found.value / peak.value
        if share <= _ABOVE_PEAK:
            continue
        name = metric_title(key.removesuffix(".p50"))
        told = f"{name} is {percent(share)} of the peak, {peak.value:g} {found.unit} ({peak.source})"
        if peak.is_verified:
            yield void("above_peak", f"Faster than the hardware allows: {told}. Update its driver, and measure again.")
        else:
            yield suspect("above_peak", f"Either the reading or the peak is wrong: {told}.")


def check_page_cache(evidence: HardwareEvidence) -> Iterator[Reason]:
    """Without direct input and output, memory is measured too."""
    effective = evidence.result.effective
    cache = effective.details.get("page cache", "") if effective is not None else ""
    if cache.startswith("not bypassed"):
        yield suspect("page_cache", f"The page cache was {cache}. The figures mix the disk and memory.")


def describe_left_out(evidence: HardwareEvidence) -> Iterator[Reason]:
    """Say what does not run here."""
    details = evidence.result.effective.details if evidence.result.effective is not None else {}
    for name, why in details.items():
        if name.endswith(" left out"):
            yield note("left_out", f"{name.removesuffix(' left out')} was skipped: it {why}.")


def check_cached_arrays(evidence: HardwareEvidence) -> Iterator[Reason]:
    """Arrays that fit a cache measure the cache."""
    effective = evidence.result.effective
    if effective is not None and "the cache helps" in effective.details.get("array", ""):
        yield suspect("small_arrays", f"The arrays are {effective.details['array']}.")


_SHARED: tuple[Rule, ...] = (
    rules.nothing_measured,
    rules.check_contamination,
    rules.check_watch,
    rules.check_counters,
    check_canary,
    rules.failed_repetitions,
    rules.partial_result,
    rules.few_runs,
    rules.wide_interval,
    rules.check_throttling,
    rules.never_warm,
    rules.until_reached,
    rules.blind,
)
_OWN = (check_peaks, check_page_cache, check_cached_arrays, describe_left_out)


def judge_hardware(evidence: HardwareEvidence) -> Verdict:
    """Return the verdict on one test."""
    own = [reason for rule in _OWN for reason in rule(evidence)]
    return verdict_of([*own, *(reason for rule in _SHARED for reason in rule(evidence))])
