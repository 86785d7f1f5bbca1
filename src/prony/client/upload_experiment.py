"""Send an experiment that was measured elsewhere to a server."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from prony.client.connection import Content
from prony.errors import InputError, NotFoundError
from prony.model.queue import ExperimentView
from prony.store.bundle import EXPERIMENT, MANIFEST
from prony.store.folder import JOB
from prony.store.result_tar import pack

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
        return upload(pack(folder, tar).sha256, _pieces(tar))


def _check_holds_results(folder: Path) -> None:
    """Refuse what is no experiment before all of it is sent."""
    if not folder.is_dir():
        raise NotFoundError(f"no folder at {folder}", hint="name an export or a result folder")
    marks = (EXPERIMENT, MANIFEST, JOB)
    if not any((folder / mark).exists() for mark in marks) and not any(folder.glob(f"*/{JOB}")):
        raise InputError(
            f"{folder} is neither an export nor a result folder", hint=f"it has no {EXPERIMENT} and no {JOB}"
        )


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
