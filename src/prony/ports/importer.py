"""Importers: folders of results that another program wrote, kept as experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prony.model.experiment import Experiment
    from prony.store.store import Store


class Importer(Protocol):
    """An entry point of `prony.importers`; its name tells whose folders it reads."""

    def fits(self, path: Path) -> bool:
        """Tell whether a folder is one that this importer reads.

        Args:
            path: What a person named; it may not exist. A folder of Prony's own fits no importer.

        Returns:
            Whether it is.
        """
        ...

    def bring_in(self, store: Store, path: Path) -> tuple[Experiment, ...]:
        """Keep what a folder holds; the same again changes nothing.

        Args:
            store: Where the experiments are kept.
            path: A folder that fits.

        Returns:
            The experiments.

        Raises:
            InputError: A file is not what it should be; then nothing was kept.
        """
        ...
