"""Recorded experiments that come with Prony, for a first look at a server: real measurements, kept small."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import IO

from prony.app.interchange import import_folder
from prony.model.experiment import Experiment
from prony.store.home import Home
from prony.store.store import Store

ARCHIVE = "recordings.tar.gz"


def import_recordings(home: Home, on_import: Callable[[Experiment], None]) -> int:
    """Keep every recorded experiment in a home, as `prony import` does; return how many there are."""
    with files("prony.app").joinpath(ARCHIVE).open("rb") as content:
        return import_archive(home, content, on_import)


def import_archive(home: Home, content: IO[bytes], on_import: Callable[[Experiment], None]) -> int:
    """Keep every experiment of a packed archive in a home; return how many there are."""
    with tempfile.TemporaryDirectory(prefix="prony-recordings-") as scratch, Store.open(home) as store:
        with tarfile.open(fileobj=content) as archive:
            archive.extractall(scratch, filter="data")
        folders = sorted(Path(scratch).iterdir())
        for folder in folders:
            on_import(import_folder(store, folder))
    return len(folders)
