"""Exporters: the requests of a load, written as another program does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prony.report.exported import ExportedLoad


class Exporter(Protocol):
    """A function behind an entry point of `prony.exporters`, whose name is what `prony export --format` takes."""

    def __call__(self, load: ExportedLoad, to: Path) -> list[Path]:
        """Write one load into a folder that exists.

        Args:
            load: The job with its result, and the recipe as it was written where that was another program's.
            to: The folder; files of the same names are replaced.

        Returns:
            The files that a person opens first.

        Raises:
            NotFoundError: Its requests cannot be read.
        """
        ...
