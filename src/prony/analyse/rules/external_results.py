"""Rules on figures that another program measured: what it cannot know, the reader must."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.evidence import Evidence, suspect
from prony.model.estimate import Reason


def no_samples(evidence: Evidence) -> Iterator[Reason]:
    """Nothing here can be computed again, and no interval can be given."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect(
            "reported",
            f"These figures were reported by {who}, medians and means alone: no sample is stored, so no interval, no "
            "spread between runs and no outlier can be told.",
        )


def warmup_unknown(evidence: Evidence) -> Iterator[Reason]:
    """The first inferences of a process are slow, and they are among those that were counted."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect(
            "warmup_not_separated",
            f"The report of {who} does not tell warm inferences from the first ones: mean, maximum and deviation may "
            "hold the warm-up.",
        )


def machine_unwatched(evidence: Evidence) -> Iterator[Reason]:
    """What else the machine did, nobody looked at."""
    if (who := reporter_of(evidence)) is not None:
        yield suspect("machine_not_watched", f"The report of {who} says nothing of what else the machine did.")


def reporter_of(evidence: Evidence) -> str | None:
    """Return whose report the numbers are from; None where they are from samples."""
    reported = evidence.result.reported
    return reported.by if reported is not None and evidence.headline is not None else None
