"""Campaigns in, their CSV files out: written anew from what is stored whenever one is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from prony.app.fleet import Fleet
from prony.app.sark.shown import csv_rows, file_name
from prony.errors import InputError, NotFoundError
from prony.model.experiment import ExperimentState
from prony.report.sark_csv import sark_csv
from prony.store import campaigns

_OPEN = (ExperimentState.PENDING.value, ExperimentState.RUNNING.value)
_FOLDER = "outputs"


@dataclass(frozen=True)
class CsvFile:
    name: str
    text: str


class Files:
    """A file appears when its campaign has ended, whole, and under the same name for ever."""

    fleet: Fleet

    async def campaign_csv(self, campaign_id: str) -> CsvFile:
        """Return what a campaign brought so far."""

        def ask(connection: Connection) -> str:
            campaigns.require(connection, campaign_id)
            rows = csv_rows(campaigns.results(connection, campaign_id))
            if not rows:
                raise NotFoundError("No results available yet")
            return sark_csv(rows)

        return CsvFile(f"{campaign_id}_results.csv", await self.fleet.context.read(ask))

    async def every_csv(self) -> CsvFile:
        def ask(connection: Connection) -> str:
            rows = csv_rows(campaigns.results(connection))
            if not rows:
                raise NotFoundError("No results available")
            return sark_csv(rows)

        text = await self.fleet.context.read(ask)
        return CsvFile(f"all_results_{self.fleet.context.clock.now().astimezone():%Y%m%d_%H%M%S}.csv", text)

    async def files(self) -> dict[str, Any]:
        def ask(connection: Connection) -> list[dict[str, Any]]:
            found = [row for row in campaigns.every(connection) if _is_ended(row)]
            found.sort(key=lambda row: row.ended_at, reverse=True)
            return [_build_row(row, _written(connection, row)) for row in found]

        listed = await self.fleet.context.read(ask)
        return {"count": len(listed), "files": listed}

    async def file(self, name: str) -> CsvFile:
        if ".." in name or name.startswith("/"):
            raise InputError("Invalid filename")

        def ask(connection: Connection) -> str:
            row = campaigns.one(connection, name.partition("_")[0])
            if row is None or not _is_ended(row) or file_name(row.id, row.ended_at) != name:
                raise NotFoundError("File not found")
            return _written(connection, row)

        return CsvFile(name, await self.fleet.context.read(ask))


def _is_ended(row: Row[Any]) -> bool:
    return row.state not in _OPEN and row.ended_at is not None


def _written(connection: Connection, row: Row[Any]) -> str:
    return sark_csv(csv_rows(campaigns.results(connection, row.id)))


def _build_row(row: Row[Any], text: str) -> dict[str, Any]:
    name, size = file_name(row.id, row.ended_at), len(text.encode())
    return {
        "filename": name,
        "path": f"{_FOLDER}/{name}",
        "size_bytes": size,
        "size_mb": round(size / 2**20, 2),
        "modified": row.ended_at.astimezone().replace(tzinfo=None, microsecond=0).isoformat(),
    }
