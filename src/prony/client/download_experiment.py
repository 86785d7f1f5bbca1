"""An experiment on a server in, the folder that `prony export` would write there out: checked, whole or not at all."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from prony.client.api import Client
from prony.errors import ConflictError, StoreError, TransportError
from prony.store.bundle import EXPERIMENT, read_bundle
from prony.store.manifest import MANIFEST


def carry_export(client: Client, experiment_id: str, to: Path, *, overwrite: bool = False) -> Path:
    """Bring an experiment to the folder `to` and verify every checksum; return where it is."""
    to = to.absolute()
    _check_target(to, overwrite=overwrite)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent, ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            tar = client.export(experiment_id, folder / "export.tar")
            fresh = _unpack(tar, folder / "export")
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


def _unpack(tar: Path, to: Path) -> Path:
    """Write the files of a tar below `to`, plain ones with plain names only; return the folder that is the export."""
    try:
        with tarfile.open(tar, "r:") as archive:
            for member in archive:
                if not member.isdir():
                    _extract(archive, member, to)
    except tarfile.TarError as exc:
        raise TransportError(f"the export that arrived is damaged: {exc}", hint="ask for it again") from exc
    inside = sorted(to.iterdir()) if to.is_dir() else []
    # Whether the server packed the folder or what is in it makes no difference.
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else to


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> None:
    name = PurePosixPath(member.name)
    source = archive.extractfile(member) if member.isreg() else None
    if source is None or name.is_absolute() or ".." in name.parts or any(letter in member.name for letter in "\\:\0"):
        raise TransportError(f"the export that arrived holds {member.name[:100]!r}, which is refused")
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("xb") as file:
        shutil.copyfileobj(source, file)


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
