"""Exporters: write the requests of one load in a format of another program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from prony.model.experiment_data import Entry
from prony.model.sweep import Bottleneck


class Exporter(Protocol):
    """A function behind an entry point of `prony.exporters`, whose name is what `prony export --format` takes.

    One with an attribute `takes_every_kind` that is true is given jobs of every kind, not loads alone.
    """

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


@dataclass(frozen=True)
class ExportedLoad:
    """`written` is a recipe in another program's dialect as its author wrote it, empty where it is Prony's own;
    `bottleneck` is what limited the load, where that was looked for."""

    entry: Entry
    written: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: Bottleneck | None = None
    dialect: str = ""
