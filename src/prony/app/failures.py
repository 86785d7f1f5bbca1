"""Report the failures of a store's jobs by cause."""

from __future__ import annotations

from datetime import datetime

from prony.analyse.failure_groups import report_failures
from prony.model.failures import FailureReport
from prony.store import failures
from prony.store.database import Connection

# Beyond this the newest are enough to see what goes wrong.
_MOST = 10_000


def read_failures(connection: Connection, since: datetime) -> FailureReport:
    """Return what failed since then, by cause."""
    found = failures.list_failures(connection, since=since, most=_MOST)
    return report_failures(found, since=since, is_cut=len(found) >= _MOST)
