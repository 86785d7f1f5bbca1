"""An experiment on a server in, the folder that `prony export` would write there out: checked, whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from prony.client.api import Client
from prony.errors import ConflictError, StoreError
from prony.store.bundle import EXPERIMENT, read_bundle
from prony.store.manifest import MANIFEST
from prony.store.parcel import unpack

# An export holds as many results as its experiment has jobs; the disk is the only limit.
_MOST_FILES = 10_000_000
_MOST_BYTES = 2**50


def carry_export(client: Client, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
    """Bring an experiment to the folder `to` and verify every checksum; return where it is."""
    to = to.absolute()
    _check_target(to, overwrite=overwrite)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent, ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            tar = client.export(experiment_id, folder / "export.tar")
            fresh = folder / "export"
            unpack(tar, fresh, most_files=_MOST_FILES, most_bytes=_MOST_BYTES)
            read_bundle(fresh)
            _put(fresh, to, aside=folder / "before")
    except OSError as exc:
        raise StoreError(f"cannot write {to}: {exc.strerror}", hint="is there room, and may you write there?") from exc
    return to


def _check_target(to: Path, *, overwrite: bool) -> None:
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        return
    if not overwrite:
        raise ConflictError(f"{to} exists already", hint="name another folder, or overwrite it: --overwrite")
    # Overwriting removes the whole folder: only one that we made.
    if not (to / MANIFEST).is_file() or not (to / EXPERIMENT).is_file():
        raise ConflictError(f"{to} is not an export, so it is not overwritten", hint="name another folder")


def _put(fresh: Path, to: Path, *, aside: Path) -> None:
    """Rename the new folder into its place; the old one is away for an instant, and comes back on error."""
    if not to.exists():
        fresh.rename(to)
        return
    to.rename(aside)
    try:
        fresh.rename(to)
    except OSError:
        aside.rename(to)
        raise
