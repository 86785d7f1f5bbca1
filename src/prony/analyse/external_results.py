"""Turn figures that another program reported into estimates without intervals, with rules on what it cannot know.

What the other program cannot know, the reader must know.
"""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.estimates import EstimateSet
from prony.analyse.verdict import Evidence, suspect
from prony.model.estimate import Estimate, Reason
from prony.model.metric import metric_of
from prony.model.result import Reported


def reported_figures(reported: Reported | None) -> EstimateSet:
    """Return the figures as they were told; nothing here can compute an interval for them."""
    if reported is None:
        return EstimateSet()
    estimates = {
        key: Estimate(
            value=value,
            unit=metric_of(key).unit,
            count=reported.count,
            level="sample",
            method=f"as reported by {reported.by}",
        )
        for key, value in reported.figures.items()
    }
    return EstimateSet(estimates)


def no_samples(evidence: Evidence) -> Iterator[Reason]:
    """Nothing here can be computed again, and no interval can be given."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect(
            "reported",
            f"These figures were reported by {who}, only as medians and means. Without samples, there are "
            "no intervals, no spread between runs and no outliers.",
        )


def warmup_unknown(evidence: Evidence) -> Iterator[Reason]:
    """The first inferences of a process are slow, and they are among those that were counted."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect(
            "warmup_not_separated",
            f"The report of {who} does not separate warm inferences from the first ones: "
            "mean, maximum and deviation may include the warm-up.",
        )


def machine_unwatched(evidence: Evidence) -> Iterator[Reason]:
    """What else the machine did, nobody looked at."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect("machine_not_watched", f"The report of {who} does not say what else ran on the machine.")


def reporter_of(evidence: Evidence) -> str | None:
    """Return whose report the numbers are from; None where they are from samples."""
    reported = evidence.result.reported
    return reported.by if reported is not None and evidence.headline is not None else None
