"""Merge the records of all client processes into one table of requests, with the kept replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from prony.load.records import FIELDS, Columns, read_records
from prony.load.spool import Kept
from prony.ports.driver import Reply, Stamps


@dataclass(frozen=True)
class ClientFacts:
    """One client process, as it tells of itself. Lags are how late a timer of ten milliseconds came."""

    pid: int
    cpu_s: float
    wall_s: float
    rows: int
    sent: int
    connections_opened: int
    connections_asked: int
    sessions_resumed: int
    asked_again: int  # requests sent a second time, because the server had just closed the connection
    in_flight_mean: float
    in_flight_max: int
    loop_lag_p50_ns: int
    loop_lag_p99_ns: int
    loop_lag_max_ns: int
    rss_peak_mib: float
    is_real_time: bool  # it ran before all ordinary processes


@dataclass(frozen=True)
class LoadOutcome:
    """`records` are `records.FIELDS` and `client`, the number of the process; a row for each request, by index."""

    records: Columns
    clients: tuple[ClientFacts, ...]
    begin_ns: int
    end_ns: int  # of sending
    full_until_ns: int | None = None  # when the first user had sent all of its requests, before the others
    was_stopped: bool = False
    spools: Sequence[Path] = field(default=())

    def __len__(self) -> int:
        return len(self.records["index"])

    def replies(self, rows: Iterable[int] | None = None) -> Iterator[tuple[int, Reply]]:
        """Yield (row, reply) of every kept reply, or of these rows; a row without one is passed over."""
        kept = [Kept(path) for path in self.spools]
        try:
            places, clients = self.records["spool_at"], self.records["client"]
            for row in range(len(self)) if rows is None else rows:
                reply = kept[clients[row]].at(int(places[row])) if places[row] >= 0 else None
                if reply is not None:
                    yield row, reply
        finally:
            for one in kept:
                one.close()


def merge_rows(paths: Sequence[Path]) -> Columns:
    """Return the columns of all rows, by index."""
    tables: list[Stamps] = [read_records(path) for path in paths]
    table = np.concatenate(tables) if tables else np.empty((0, len(FIELDS)), np.int64)
    clients = np.repeat(np.arange(len(tables), dtype=np.int64), [len(one) for one in tables])
    order = np.argsort(table[:, 0], kind="stable")
    columns = {name: np.ascontiguousarray(table[order, number]) for number, name in enumerate(FIELDS)}
    return columns | {"client": clients[order]}
