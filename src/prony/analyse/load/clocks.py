"""Rules on a load that several agents sent: did they begin together, and is it known how their clocks stood?"""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.evidence import percent, suspect, void
from prony.analyse.load.evidence import LoadEvidence
from prony.model.clients import Member
from prony.model.estimate import Reason

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
            f"The clock of agent {agent} is known within {worst:.3g} ms of the server's, drift counted in, which is "
            f"{share} of the median latency of {median:.3g} ms. Each latency is of one clock and holds none of it, but "
            "the agents began by as much apart: what was in flight together is not known better. Have agents near the "
            "server, on a quiet network.",
        )


def late_at_start(evidence: LoadEvidence) -> Iterator[Reason]:
    """A member that began late sent what was due meanwhile in a burst."""
    late = [(timing.late_ns / 1e6, one.agent) for one in _members(evidence) if (timing := one.timing) is not None]
    worst, agent = max(late, default=(0.0, ""))
    if worst > _LATE_MS:
        yield suspect(
            "late_start",
            f"Agent {agent} heard of the common start {worst:.3g} ms after it: the load was less until then, and what "
            "was due went out in a burst. Is that agent, or the way to it, too busy?",
        )


def too_few(evidence: LoadEvidence) -> Iterator[Reason]:
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
