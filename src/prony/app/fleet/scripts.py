"""Folders of scripts that recipes name, each kept as a tar under its checksum."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path

from prony.app.fleet import uploads
from prony.app.fleet.context import FleetContext
from prony.errors import CapacityError, InputError, NotFoundError
from prony.model.job import Job
from prony.runner.script_folders import MOST_TAR_BYTES, REFERENCE, check_archive
from prony.store.experiments import named_scripts
from prony.store.home import Home

_GRACE_S = 3600.0  # from when scripts are brought to when the experiment that names them is kept
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Scripts:
    """Keep folders of scripts once, however many recipes name them."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context

    async def add(self, sha256: str, chunks: AsyncIterator[bytes]) -> None:
        """Take a tar of scripts; what is there already is not written again."""
        place = _place(self._context.store.home, sha256)
        coming = self._context.store.home.uploads / f"scripts-{uuid.uuid4().hex}"
        try:
            await uploads.save(chunks, coming, most=MOST_TAR_BYTES)
            if await asyncio.to_thread(_digest, coming) != sha256:
                raise InputError(
                    f"the upload does not have the checksum sha256:{sha256}", hint="send it again", code="damaged"
                )
            await asyncio.to_thread(check_archive, coming)
            await self._make_room(coming.stat().st_size, place)
            place.parent.mkdir(parents=True, exist_ok=True)
            coming.replace(place)
        finally:
            coming.unlink(missing_ok=True)

    async def _make_room(self, size: int, place: Path) -> None:
        """Refuse scripts for which the quota has no room, when those are gone that nothing needs."""
        quota = self._context.settings.scripts_quota_bytes
        if place.is_file() or await asyncio.to_thread(_count_bytes, self._context.store.home) + size <= quota:
            return
        await remove_unneeded(self._context)
        if await asyncio.to_thread(_count_bytes, self._context.store.home) + size > quota:
            raise CapacityError(
                f"no space for this script folder: all of them may take {quota / 2**20:.0f} MiB on this server",
                hint="delete experiments that you no longer need, or raise PRONY_SCRIPTS_QUOTA",
                code="scripts_quota",
            )

    async def get(self, sha256: str) -> Path:
        place = _place(self._context.store.home, sha256)
        if not place.is_file():
            hint = "submit the recipe again: that sends its scripts"
            raise NotFoundError(f"this server has no scripts sha256:{sha256}", hint=hint, code="no_scripts")
        return place


async def remove_unneeded(context: FleetContext) -> list[str]:
    """Remove the scripts that no experiment and no schedule names; what has just come may not be named yet."""
    home = context.store.home
    old = await asyncio.to_thread(lambda: {path.stem for path in _list_archives(home) if _is_old(path)})
    named = await context.read(lambda connection: named_scripts(connection, old)) if old else set()
    unneeded = sorted(old - named)
    for sha256 in unneeded:
        path = _place(home, sha256)
        if _is_old(path):  # else a submission has looked for it meanwhile
            path.unlink(missing_ok=True)
    return unneeded


def _list_archives(home: Home) -> list[Path]:
    return [path for path in (home.root / "scripts").glob("*.tar") if _SHA256.fullmatch(path.stem)]


def _count_bytes(home: Home) -> int:
    total = 0
    for path in _list_archives(home):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _GRACE_S
    except FileNotFoundError:
        return False


def store_scripts(home: Home, sha256: str, pieces: Iterable[bytes]) -> None:
    """Keep a tar of scripts where a server on this home finds it; nobody else sees half of it."""
    place = _place(home, sha256)
    if place.is_file():
        os.utime(place)
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
    for directory in dict.fromkeys(job.workload.folder for job in jobs):
        if directory is None:
            continue
        found = REFERENCE.fullmatch(directory)
        if found is None:
            raise InputError(
                f"workload.directory is {directory}, a folder that this server does not have",
                hint="prony run RECIPE --server URL uploads it; programs use PUT /scripts/{sha256}",
                code="no_scripts",
            )
        place = _place(home, found[1])
        if not place.is_file():
            raise InputError(
                f"the scripts {directory} were not uploaded", hint="PUT /scripts/{sha256} first", code="no_scripts"
            )
        os.utime(place)  # it is needed from now on, and only soon named by what is submitted


def _place(home: Home, sha256: str) -> Path:
    if _SHA256.fullmatch(sha256) is None:
        raise InputError(
            "scripts are named by their SHA-256, 64 hexadecimal digits",
            hint="PUT /scripts/{sha256} takes a tar under the SHA-256 of its bytes",
        )
    return home.root / "scripts" / f"{sha256}.tar"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
