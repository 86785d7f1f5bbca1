"""Write the CSV files of campaigns anew from what is stored, whenever one is asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony.app.fleet.fleet import Fleet
from prony.compat.sark.face.shown import csv_rows, file_name
from prony.compat.sark.nouns import CSV_COLUMNS
from prony.errors import InputError, NotFoundError
from prony.model.experiment import ExperimentState
from prony.model.shown import visible
from prony.store import campaigns

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

# A spreadsheet takes a cell that begins so for a formula, and these come from whoever registered.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sark_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return the table; what a row does not know is empty."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in CSV_COLUMNS])
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, str):
        text = visible(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value


_OPEN = (ExperimentState.PENDING.value, ExperimentState.RUNNING.value)
_FOLDER = "outputs"


@dataclass(frozen=True)
class CsvFile:
    name: str
    text: str


class CampaignFiles:
    """A file appears when its campaign has ended, whole, and under the same name for ever."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def campaign_csv(self, campaign_id: str) -> CsvFile:
        """Return what a campaign brought so far."""

        def ask(connection: Connection) -> str:
            campaigns.require(connection, campaign_id)
            rows = csv_rows(campaigns.results(connection, campaign_id))
            if not rows:
                raise NotFoundError("No results available yet")
            return sark_csv(rows)

        return CsvFile(f"{campaign_id}_results.csv", await self._fleet.context.read(ask))

    async def every_csv(self) -> CsvFile:
        def ask(connection: Connection) -> str:
            rows = csv_rows(campaigns.results(connection))
            if not rows:
                raise NotFoundError("No results available")
            return sark_csv(rows)

        text = await self._fleet.context.read(ask)
        return CsvFile(f"all_results_{self._fleet.context.clock.now().astimezone():%Y%m%d_%H%M%S}.csv", text)

    async def list_files(self) -> dict[str, Any]:
        def ask(connection: Connection) -> list[dict[str, Any]]:
            found = [row for row in campaigns.every(connection) if _is_ended(row)]
            found.sort(key=lambda row: row.ended_at, reverse=True)
            return [_build_row(row, _written(connection, row)) for row in found]

        listed = await self._fleet.context.read(ask)
        return {"count": len(listed), "files": listed}

    async def file(self, name: str) -> CsvFile:
        if ".." in name or name.startswith("/"):
            raise InputError("Invalid filename")

        def ask(connection: Connection) -> str:
            row = campaigns.one(connection, name.partition("_")[0])
            if row is None or not _is_ended(row) or file_name(row.id, row.ended_at) != name:
                raise NotFoundError("File not found")
            return _written(connection, row)

        return CsvFile(name, await self._fleet.context.read(ask))


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
