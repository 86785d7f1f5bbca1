"""Folders of scripts on their way: a tar in, kept under its checksum; a checksum in, the tar out."""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from prony.app.fleet import uploads
from prony.app.fleet.office import Office
from prony.errors import InputError, NotFoundError
from prony.model.job import Job
from prony.model.script import ScriptWorkload
from prony.run.scripts.packing import MOST_BYTES, REFERENCE
from prony.store.home import Home

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Scripts(Office):
    """Kept once, however many recipes name them."""

    async def keep_scripts(self, sha256: str, chunks: AsyncIterator[bytes]) -> None:
        """Take a tar of scripts; what is there already is not written again."""
        place = _place(self.store.home, sha256)
        coming = self.store.home.uploads / f"scripts-{uuid.uuid4().hex}"
        try:
            await uploads.save(chunks, coming, most=MOST_BYTES)
            if await asyncio.to_thread(_digest, coming) != sha256:
                raise InputError(f"what arrived is not sha256:{sha256}", hint="send it again", code="damaged")
            place.parent.mkdir(parents=True, exist_ok=True)
            coming.replace(place)
        finally:
            coming.unlink(missing_ok=True)

    async def scripts(self, sha256: str) -> Path:
        place = _place(self.store.home, sha256)
        if not place.is_file():
            raise NotFoundError(f"there are no scripts sha256:{sha256} here", code="no_scripts")
        return place


def keep(home: Home, sha256: str, pieces: Iterable[bytes]) -> None:
    """Keep a tar of scripts where a server on this home finds it; nobody else sees half of it."""
    place = _place(home, sha256)
    if place.is_file():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    coming = place.with_name(f".{uuid.uuid4().hex}")
    try:
        with coming.open("xb") as file:
            file.writelines(pieces)
        coming.replace(place)
    finally:
        coming.unlink(missing_ok=True)


def check_scripts(jobs: Iterable[Job], home: Home) -> None:
    """Refuse a script whose files are not here: no agent could have them."""
    for directory in dict.fromkeys(job.workload.directory for job in jobs if isinstance(job.workload, ScriptWorkload)):
        if directory is None:
            continue
        found = REFERENCE.fullmatch(directory)
        if found is None:
            raise InputError(
                f"workload.directory is {directory}, a folder that this server does not have",
                hint="prony run RECIPE --server URL brings it along; programs use PUT /scripts/{sha256}",
                code="no_scripts",
            )
        if not _place(home, found[1]).is_file():
            raise InputError(
                f"the scripts {directory} were not brought here", hint="PUT /scripts/{sha256} first", code="no_scripts"
            )


def _place(home: Home, sha256: str) -> Path:
    if _SHA256.fullmatch(sha256) is None:
        raise InputError("scripts are named by their SHA-256, 64 hexadecimal digits")
    return home.root / "scripts" / f"{sha256}.tar"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
