"""Judge the measurement of a load: ask every rule and let the worst reason decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prony.analyse.evidence import Rule
from prony.analyse.load import clocks, early_ends, external_load_rules, rules
from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.rules import external_results, machine, repetition
from prony.analyse.verdict import verdict_of
from prony.model.estimate import Reason, Verdict

_SHARED: tuple[Rule, ...] = (
    external_results.no_samples,
    machine.check_contamination,
    repetition.failed_repetitions,
    repetition.wide_interval,
    machine.check_throttling,
    repetition.blind,
)
RULES: tuple[Callable[[LoadEvidence], Iterator[Reason]], ...] = (
    rules.all_failed,
    rules.not_delivered,
    rules.late_client,
    rules.errors,
    rules.cut_requests,
    early_ends.cut_by_time,
    early_ends.users_apart,
    early_ends.stopped_by_user,
    early_ends.silent_clients,
    rules.sent_late,
    rules.busy_client,
    rules.unwatched_client,
    rules.fewer_connections,
    clocks.unsure_clocks,
    clocks.late_at_start,
    clocks.too_few,
    external_load_rules.brought_in,
    external_load_rules.own_processes,
    external_load_rules.coarse_stamps,
    external_load_rules.unread_lines,
    external_load_rules.in_no_time,
    external_load_rules.own_summary,
    external_load_rules.made_up,
    rules.partial_result,
    rules.few_runs,
    rules.no_steady_state,
    rules.too_short,
    rules.asked_again,
    rules.limits_of_requests,
    rules.tokens_uncounted,
    rules.limits_of_runs,
    rules.found_by_search,
    rules.rules_of_mlperf,
)


def judge_load(evidence: LoadEvidence) -> Verdict:
    """Return the verdict with its reasons, the worst first; reasons of grade valid are notes."""
    told = [reason for rule in RULES for reason in rule(evidence)]
    if not {"all_failed", "no_requests"} & {reason.code for reason in told}:
        # Where not one request was answered, or written down, that says it all.
        told += repetition.nothing_measured(evidence)
    return verdict_of([*told, *(reason for rule in _SHARED for reason in rule(evidence))])
