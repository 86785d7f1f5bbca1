"""Destinations: other programs that keep results and logs, such as Elasticsearch or MLflow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from prony.model.estimate import Estimate
from prony.model.experiment import Experiment
from prony.model.experiment_data import Entry


@dataclass(frozen=True)
class ExportedJob:
    """A job with its result. `log` is the end of its log, lines of `TIME SOURCE TEXT`; empty where it has none."""

    entry: Entry
    log: str = ""

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Return the numbers that JSON can hold: a single run has no spread, and an interval may have no end."""
        return {
            key: one.model_copy(update={"low": _finite(one.low), "high": _finite(one.high)})
            for key, one in self.entry.summary.estimates.items()
            if math.isfinite(one.value)
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


class Destination(Protocol):
    """A class behind an entry point of `prony.destinations`, made with the address that follows its name.

    An address is written `NAME+http://HOST:PORT/PATH`, or with https. A user and a password may stand before the host.
    """

    def __init__(self, url: str) -> None:
        """Take the address without the name.

        Raises:
            InputError: The address lacks something.
        """

    def send(self, experiment: Experiment, jobs: Iterable[ExportedJob]) -> str:
        """Send an experiment. What is sent again replaces what was sent before, so that a repeat does no harm.

        Args:
            experiment: The experiment, which has ended.
            jobs: Its jobs that have a result.

        Returns:
            Where a person finds it there.

        Raises:
            TransportError: Nobody answered, or the other side is in trouble: the same may succeed later.
            InputError: The other side refused it.
        """
        ...
