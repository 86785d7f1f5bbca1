"""Bring an experiment from a server to this machine, whole and verified, or send one there."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from prony.client.connection import Content
from prony.errors import InputError, NotFoundError, StoreError, TransportError
from prony.model.queue import ExperimentView
from prony.store.bundle import EXPERIMENT, MANIFEST, check_export_target, read_bundle
from prony.store.folder import JOB
from prony.store.home import Home, home, safe_id
from prony.store.result_tar import pack

# Writes the tar of an export to a file.
Download = Callable[[Path], Path]


def keep_report(name: str, document: bytes) -> Path:
    """Write an HTML report of what a server has into this home, and return where it is."""
    path = home().root / "reports" / f"{safe_id(name)}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document)
    return path


def export_carried_requests(download: Download, export_format: str, to: Path) -> tuple[Path, ...]:
    """Take an experiment along into a home that is gone afterwards, and write its requests as from any home."""
    from prony.app.bench import Bench
    from prony.report.exports.formats import check_format

    check_format(export_format)
    with tempfile.TemporaryDirectory(prefix="prony-export-") as scratch:
        folder = carry_export(download, Path(scratch) / "export")
        with Bench.open(Home(Path(scratch) / "home")) as bench:
            experiments = bench.experiments
            return experiments.export_requests(experiments.import_(folder).id, export_format, to)


def carry_export(download: Download, to: Path, *, overwrite: bool = False) -> Path:
    """Bring an experiment to the folder `to` and verify every checksum.

    Args:
        download: Fetches the tar of the export.
        to: The folder to make.
        overwrite: Replace a folder that is an export already.

    Returns:
        Where it is, as an absolute path.

    Raises:
        StoreError: The folder cannot be written.
        ConflictError: The folder exists, and is not to be overwritten.
    """
    to = to.absolute()
    check_export_target(to, overwrite=overwrite)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent, ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            tar = download(folder / "export.tar")
            fresh = _unpack(tar, folder / "export")
            read_bundle(fresh)
            _put(fresh, to, aside=folder / "before")
    except OSError as exc:
        raise StoreError(
            f"cannot write {to}: {exc.strerror}", hint="check the free space and the permissions there"
        ) from exc
    return to


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
        raise TransportError(
            f"the export that arrived holds {member.name[:100]!r}, which is refused",
            hint="check that this is the address of your server",
        )
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


_PIECE = 2**20
# Sends a tar, by its SHA-256.
Upload = Callable[[str, Content], ExperimentView]


def send_folder(upload: Upload, folder: Path) -> ExperimentView:
    """Send an export, a result folder or a folder of them, and return what the server has then.

    Args:
        upload: Sends a tar.
        folder: What to send.

    Raises:
        NotFoundError: There is no such folder.
        InputError: It holds no experiment.
    """
    _check_holds_results(folder)
    with tempfile.TemporaryDirectory(prefix="prony-import-") as scratch:
        tar = Path(scratch) / "import.tar"
        return upload(pack(folder, tar).sha256, read_pieces(tar))


def _check_holds_results(folder: Path) -> None:
    """Refuse what is no experiment before all of it is sent."""
    if not folder.is_dir():
        raise NotFoundError(f"no folder at {folder}", hint="name an export or a result folder")
    marks = (EXPERIMENT, MANIFEST, JOB)
    if not any((folder / mark).exists() for mark in marks) and not any(folder.glob(f"*/{JOB}")):
        raise InputError(
            f"{folder} is neither an export nor a result folder", hint=f"it has no {EXPERIMENT} and no {JOB}"
        )


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, some at a time."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
