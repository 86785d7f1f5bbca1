"""Rules on how a load was sent: by several agents together, by all its clients, and to its end."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.verdict import percent, runs_text, suspect, void
from prony.model.clients import Member
from prony.model.estimate import Reason
from prony.model.quantity import duration_text

# Against the median latency: what is compared between agents is who was in flight with whom.
_UNSURE = 0.10
_LATE_MS = 1.0


def unsure_clocks(evidence: LoadEvidence) -> Iterator[Reason]:
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
            f"The clock of agent {agent} is known within {worst:.3g} ms of the server's, including drift, which is "
            f"{share} of the median latency of {median:.3g} ms. Each latency uses one clock and is not affected, "
            "but the agents may "
            "have started this far apart: concurrency is known only within it. Have agents near the "
            "server, on a quiet network.",
        )


def late_at_start(evidence: LoadEvidence) -> Iterator[Reason]:
    """A member that began late sent what was due meanwhile in a burst."""
    late = [(timing.late_ns / 1e6, one.agent) for one in _members(evidence) if (timing := one.timing) is not None]
    worst, agent = max(late, default=(0.0, ""))
    if worst > _LATE_MS:
        yield suspect(
            "late_start",
            f"Agent {agent} got the common start signal {worst:.3g} ms late: the load was lower until then, and "
            "overdue requests went out "
            "in a burst. Check whether that agent or its network is too busy.",
        )


def too_few_agents(evidence: LoadEvidence) -> Iterator[Reason]:
    """A run in which a member is missing was another load."""
    wanted = evidence.load.clients.agents
    if wanted > 1 and any(len(side.members) < wanted for side in evidence.used_sides):
        fewest = min(len(side.members) for side in evidence.used_sides)
        yield void(
            "member_lost",
            f"Only {fewest} of {wanted} agents sent their part of a run: the load was lower. Check the others "
            "(`prony agents`), and run it again.",
        )


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


def stopped_by_user(evidence: LoadEvidence) -> Iterator[Reason]:
    """Somebody stopped the only run there is: its rows give numbers, of less than was asked for."""
    stopped = [one for one in evidence.selection.used if one.stopped_by == "stop"]
    if not stopped:
        return
    phase, asked = stopped[0].phases["measure"], evidence.load.asked_requests
    sent = f"{phase.count:,} of {asked:,} requests" if asked else f"{phase.count:,} requests"
    seconds = (phase.end_ns - phase.begin_ns) / 1e9
    yield suspect("stopped", f"It was stopped after {seconds:.3g} s: the results cover the {sent} sent until then.")


def silent_clients(evidence: LoadEvidence) -> Iterator[Reason]:
    """Clients that wrote no request down: nobody knows what they did."""
    most = max((one.silent_clients for one in evidence.result.repetitions), default=0)
    users, where = evidence.load.users.concurrency, "into a .jsonl file in BENCHMARK_OUTPUT_DIR"
    if most and not evidence.used:
        yield void(
            "no_requests",
            f"None of {users} clients recorded a request, so there are no results: a client must write a line of JSON "
            f"for each request {where}.",
        )
    elif most:
        yield suspect(
            "silent_clients",
            f"{most} of {users} clients recorded no request: the results cover only the others. A client must "
            "write a line "
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
            f"Only {there} of {users.concurrency} users had started when the first one was done: they start "
            f"{duration_text(users.stagger)} apart (load.closed.stagger), and each sends {users.requests} requests. "
            "Start them together (--set load.closed.stagger=null), or give each more requests.",
        )
