"""Judge the measurement of a load: ask every rule and let the worst reason decide.

The rules here are on loads that several agents sent (did they begin together, and is it known how their clocks stood?),
that ended before they had sent all that was asked for, that nobody can account for, or that another program measured:
what its files cannot say, the reader must know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prony.analyse import external_results
from prony.analyse import rules as machine
from prony.analyse import rules as repetition
from prony.analyse.canaries import check_canary
from prony.analyse.load import cache_rules, rules
from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.verdict import Rule, percent, runs_text, suspect, verdict_of, void
from prony.model.clients import Member
from prony.model.estimate import Reason, Verdict
from prony.model.quantity import duration_text

# Against the median latency: what is compared between agents is who was in flight with whom.
_UNSURE = 0.10
_LATE_MS = 1.0


def _unsure_clocks(evidence: LoadEvidence) -> Iterator[Reason]:
    """Stamps of different agents are laid on one clock, as well as that clock is known."""
    median = evidence.value("e2e_ms.p50")
    known = [(_wrong_ms(one), one.agent) for one in _members(evidence)]
    if not median or not known:
        return
    worst, agent = max(known)
    if worst > _UNSURE * median:
        share = percent(worst / median) if worst < 2 * median else f"{worst / median:.0f} times"
        yield suspect(
            "clock_unsure",
            f"The clock of agent {agent} is known within {worst:.3g} ms of the server's, drift counted in, which is "
            f"{share} of the median latency of {median:.3g} ms. Each latency is of one clock and holds none of it, but "
            "the agents began by as much apart: what was in flight together is not known better. Have agents near the "
            "server, on a quiet network.",
        )


def _late_at_start(evidence: LoadEvidence) -> Iterator[Reason]:
    """A member that began late sent what was due meanwhile in a burst."""
    late = [(timing.late_ns / 1e6, one.agent) for one in _members(evidence) if (timing := one.timing) is not None]
    worst, agent = max(late, default=(0.0, ""))
    if worst > _LATE_MS:
        yield suspect(
            "late_start",
            f"Agent {agent} heard of the common start {worst:.3g} ms after it: the load was less until then, and what "
            "was due went out in a burst. Is that agent, or the way to it, too busy?",
        )


def _too_few(evidence: LoadEvidence) -> Iterator[Reason]:
    """A run in which a member is missing was another load."""
    wanted = evidence.load.clients.agents
    if wanted > 1 and any(len(side.members) < wanted for side in evidence.used_sides):
        fewest = min(len(side.members) for side in evidence.used_sides)
        yield void("member_lost", f"Only {fewest} of {wanted} agents sent their part of a run: the load was less.")


def _members(evidence: LoadEvidence) -> list[Member]:
    return [one for side in evidence.used_sides for one in side.members]


def _wrong_ms(member: Member) -> float:
    timing = member.timing
    return 0.0 if timing is None else (timing.uncertainty_ns + abs(timing.drift_ns or 0)) / 1e6


def cut_by_time(evidence: LoadEvidence) -> Iterator[Reason]:
    """The time limit ended a load before all requests that the recipe asks for were sent."""
    cut = [one for one in evidence.selection.used if one.stopped_by == "time"]
    asked, limit_ns = evidence.load.asked_requests, evidence.load.duration
    if not cut or limit_ns is None:
        return
    fewest = min(one.phases["measure"].count for one in cut)
    sent = f"{fewest:,} of {asked:,} requests were sent" if asked else f"clients still ran after {fewest:,} requests"
    yield suspect(
        "cut_by_time",
        f"The time limit of {duration_text(limit_ns)} cut {len(cut)} of {runs_text(len(evidence.selection.used))}: "
        f"{sent}. Raise load.duration, or ask for fewer requests.",
    )


def _stopped_by_user(evidence: LoadEvidence) -> Iterator[Reason]:
    """Somebody stopped the only run there is: its rows give numbers, of less than was asked for."""
    stopped = [one for one in evidence.selection.used if one.stopped_by == "stop"]
    if not stopped:
        return
    phase, asked = stopped[0].phases["measure"], evidence.load.asked_requests
    sent = f"{phase.count:,} of {asked:,} requests" if asked else f"{phase.count:,} requests"
    seconds = (phase.end_ns - phase.begin_ns) / 1e9
    yield suspect("stopped", f"It was stopped after {seconds:.3g} s: the numbers are of the {sent} sent until then.")


def silent_clients(evidence: LoadEvidence) -> Iterator[Reason]:
    """Clients that wrote no request down: nobody knows what they did."""
    most = max((one.silent_clients for one in evidence.result.repetitions), default=0)
    users, where = evidence.load.users.concurrency, "into a .jsonl file in BENCHMARK_OUTPUT_DIR"
    if most and not evidence.used:
        yield void(
            "no_requests",
            f"None of {users} clients wrote a request down, so there are no numbers: a client writes a line of JSON "
            f"for each request {where}.",
        )
    elif most:
        yield suspect(
            "silent_clients",
            f"{most} of {users} clients wrote no request down: the numbers are of the others. A client writes a line "
            f"of JSON for each request {where}.",
        )


def users_apart(evidence: LoadEvidence) -> Iterator[Reason]:
    """Users who come late found the first ones gone: never were as many there as the recipe says."""
    users = evidence.load.users
    if evidence.load.way != "closed" or not users.stagger or users.requests is None:
        return
    last_ns = users.stagger * (users.concurrency - 1)
    phases = [one.phases["measure"] for one in evidence.selection.used]
    shortest_ns = min((phase.end_ns - phase.begin_ns for phase in phases), default=last_ns)
    if shortest_ns < last_ns:
        there = min(shortest_ns // users.stagger + 1, users.concurrency)
        yield void(
            "users_apart",
            f"Only {there} of {users.concurrency} users had come when the first one was done: they start "
            f"{duration_text(users.stagger)} apart (load.closed.stagger), and each sends {users.requests} requests. "
            "Let them start together (--set load.closed.stagger=null), or give each more requests.",
        )


_COARSE_S = 2.0


def brought_in(evidence: LoadEvidence) -> Iterator[Reason]:
    """Nobody of ours watched."""
    origin = evidence.result.origin
    if origin is not None:
        yield suspect(
            "brought_in",
            f"{origin.by} measured this as {origin.identity}: what else the machines did is not recorded, and all of "
            "its requests count, those of its warm-up too.",
        )


def _own_processes(evidence: LoadEvidence) -> Iterator[Reason]:
    """A latency that holds the start of a program is not the service's."""
    origin = evidence.result.origin
    if origin is not None and origin.has_own_processes:
        yield suspect(
            "process_each",
            f"{origin.by}'s clients start a program for each request: that start, and its connection, are in every "
            "latency and limit the throughput.",
        )


def coarse_stamps(evidence: LoadEvidence) -> Iterator[Reason]:
    """A rate needs a time, and stamps of whole seconds tell it to within two."""
    origin = evidence.result.origin
    if origin is None or not origin.has_whole_seconds or not evidence.used:
        return
    seconds = min(run.window.length_ns for run in evidence.used) / 1e9
    text = f"Its stamps are whole seconds, and it lasted {seconds:.3g} s by them: its true length may be a second off"
    if seconds < _COARSE_S:
        yield void("coarse_stamps", f"{text}, so no rate can be told.")
    else:
        yield suspect("coarse_stamps", f"{text} in either direction, and every rate with it.")


def unread_lines(evidence: LoadEvidence) -> Iterator[Reason]:
    """Requests that are lost may have been the slow ones."""
    origin = evidence.result.origin
    if origin is not None and origin.unread:
        yield suspect(
            "unread_lines", f"{origin.unread} lines of its log are torn or lack a time: they are in no number."
        )


def in_no_time(evidence: LoadEvidence) -> Iterator[Reason]:
    """A clock that is set back makes latencies that are none."""
    origin = evidence.result.origin
    if origin is not None and origin.timeless:
        yield suspect(
            "in_no_time",
            f"{origin.timeless} requests succeeded in no time, or in less: its clients' clock was set while they ran, "
            "and these count here as 0 ms.",
        )


def _own_summary(evidence: LoadEvidence) -> Iterator[Reason]:
    """Two figures for one thing: only one has requests behind it."""
    origin = evidence.result.origin
    if origin is not None and origin.differs:
        yield suspect("summary_differs", f"Its own summary is not of these requests: {'; '.join(origin.differs)}.")


def made_up(evidence: LoadEvidence) -> Iterator[Reason]:
    """A number that nobody counted is none."""
    origin = evidence.result.origin
    if origin is not None and origin.left_out:
        yield suspect(
            "made_up", f"Its {' and '.join(origin.left_out)} were not counted by anybody, and are left out here."
        )


_SHARED: tuple[Rule, ...] = (
    external_results.no_samples,
    machine.check_contamination,
    machine.check_watch,
    machine.check_counters,
    check_canary,
    repetition.failed_repetitions,
    repetition.wide_interval,
    machine.check_throttling,
    repetition.blind,
    repetition.missing_intervals,
)
RULES: tuple[Callable[[LoadEvidence], Iterator[Reason]], ...] = (
    rules.all_failed,
    rules.not_delivered,
    rules.late_client,
    rules.errors,
    rules.cut_requests,
    cut_by_time,
    users_apart,
    _stopped_by_user,
    silent_clients,
    rules.sent_late,
    rules.busy_client,
    rules.unwatched_client,
    rules.fewer_connections,
    _unsure_clocks,
    _late_at_start,
    _too_few,
    brought_in,
    _own_processes,
    coarse_stamps,
    unread_lines,
    in_no_time,
    _own_summary,
    made_up,
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
        told += repetition.nothing_measured(evidence)
    return verdict_of([*told, *(reason for rule in _SHARED for reason in rule(evidence))])
