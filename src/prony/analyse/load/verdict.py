"""Judge the measurement of a load: ask every rule and let the worst reason decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prony.analyse import external_results
from prony.analyse import rules as general
from prony.analyse.canaries import check_canary
from prony.analyse.load import cache_rules, external_rules, rules, sending_rules
from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.verdict import Rule, verdict_of
from prony.model.estimate import Reason, Verdict

_SHARED: tuple[Rule, ...] = (
    external_results.no_samples,
    general.check_contamination,
    general.check_watch,
    general.check_counters,
    check_canary,
    general.failed_repetitions,
    general.wide_interval,
    general.check_throttling,
    general.blind,
    general.missing_intervals,
)
RULES: tuple[Callable[[LoadEvidence], Iterator[Reason]], ...] = (
    rules.all_failed,
    rules.not_delivered,
    rules.late_client,
    rules.errors,
    rules.cut_requests,
    sending_rules.cut_by_time,
    sending_rules.users_apart,
    sending_rules.stopped_by_user,
    sending_rules.silent_clients,
    rules.sent_late,
    rules.busy_client,
    rules.unwatched_client,
    rules.fewer_connections,
    sending_rules.unsure_clocks,
    sending_rules.late_at_start,
    sending_rules.too_few_agents,
    external_rules.brought_in,
    external_rules.own_processes,
    external_rules.coarse_stamps,
    external_rules.unread_lines,
    external_rules.in_no_time,
    external_rules.own_summary,
    external_rules.made_up,
    rules.partial_result,
    rules.few_runs,
    rules.no_steady_state,
    rules.too_short,
    cache_rules.cache_warm,
    cache_rules.cache_as_asked,
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
        told += general.nothing_measured(evidence)
    return verdict_of([*told, *(reason for rule in _SHARED for reason in rule(evidence))])
