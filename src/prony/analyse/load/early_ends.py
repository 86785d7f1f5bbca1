"""Rules on loads that ended before they had sent all that was asked for, or that nobody can account for."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.evidence import runs_text, suspect, void
from prony.analyse.load.evidence import LoadEvidence
from prony.model.estimate import Reason
from prony.model.quantity import duration_text


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
