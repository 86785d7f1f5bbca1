"""Rules on loads that another program measured: what its files cannot say, the reader must know."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.load.evidence import LoadEvidence
from prony.analyse.verdict import suspect, void
from prony.model.estimate import Reason

_COARSE_S = 2.0


def brought_in(evidence: LoadEvidence) -> Iterator[Reason]:
    """Nobody of ours watched."""
    origin = evidence.result.origin
    if origin is not None:
        yield suspect(
            "brought_in",
            f"{origin.by} measured this as {origin.identity}: other activity on the machines is not recorded, and "
            "all of its requests count, including its warm-up.",
        )


def own_processes(evidence: LoadEvidence) -> Iterator[Reason]:
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
    text = f"Its timestamps are whole seconds: the length of {seconds:.3g} s may be wrong by a second"
    if seconds < _COARSE_S:
        yield void("coarse_stamps", f"{text}, so there are no rates. Let it run longer, or use finer timestamps.")
    else:
        yield suspect("coarse_stamps", f"{text} in either direction, and so may every rate.")


def unread_lines(evidence: LoadEvidence) -> Iterator[Reason]:
    """Requests that are lost may have been the slow ones."""
    origin = evidence.result.origin
    if origin is not None and origin.unread:
        yield suspect(
            "unread_lines", f"{origin.unread} lines of its log are damaged or have no time: they are excluded."
        )


def in_no_time(evidence: LoadEvidence) -> Iterator[Reason]:
    """A clock that is set back makes latencies that are none."""
    origin = evidence.result.origin
    if origin is not None and origin.timeless:
        yield suspect(
            "in_no_time",
            f"{origin.timeless} requests ended before they began, or at the same time: the clock of its clients was "
            "changed while they ran. These requests count as 0 ms.",
        )


def own_summary(evidence: LoadEvidence) -> Iterator[Reason]:
    """Two figures for one thing: only one has requests behind it."""
    origin = evidence.result.origin
    if origin is not None and origin.differs:
        yield suspect("summary_differs", f"Its own summary does not match these requests: {'; '.join(origin.differs)}.")


def made_up(evidence: LoadEvidence) -> Iterator[Reason]:
    """A number that nobody counted is none."""
    origin = evidence.result.origin
    if origin is not None and origin.left_out:
        yield suspect("made_up", f"Its {' and '.join(origin.left_out)} were not counted, and are excluded here.")
