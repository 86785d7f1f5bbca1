"""Bring in folders of results: our own, or those of a program that an importer reads."""

from __future__ import annotations

from pathlib import Path

from prony.app import results
from prony.model.experiment import Experiment
from prony.ports import plugins
from prony.ports.importer import Importer
from prony.store import transfer
from prony.store.store import Store


def bring_in(store: Store, path: Path) -> tuple[Experiment, ...]:
    """Keep what a folder holds: an export or a result of ours, or whatever an importer finds in it."""
    importer = next((one for one in known_importers() if one.fits(path)), None)
    if importer is not None:
        return importer.bring_in(store, path)
    return (transfer.import_(store, path, summarise=results.summary_of),)


def known_importers() -> list[Importer]:
    """Load every importer."""
    return list(plugins.create_all(plugins.IMPORTERS).values())
