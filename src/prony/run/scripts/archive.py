"""A .tar of scripts in, a folder with what it holds out; nothing of it lands anywhere else."""

from __future__ import annotations

import tarfile
from pathlib import Path

from prony.errors import InputError
from prony.run.scripts.folders import MOST_BYTES, MOST_FILES


def unpacked(archive: Path, to: Path) -> Path:
    """Unpack an archive; every file can be run, for archives of scripts seldom remember which should."""
    try:
        with tarfile.open(archive) as tar:
            members = _small(tar, archive)
            to.mkdir(parents=True)
            tar.extractall(to, members=members, filter="data")
    except tarfile.FilterError as exc:
        raise InputError(f"{archive} holds what leads out of its folder: {exc}", code="bad_archive") from exc
    except (tarfile.TarError, OSError, EOFError) as exc:
        raise InputError(
            f"{archive} cannot be unpacked: {exc}",
            hint="make it with `tar -cf scripts.tar -C folder .`",
            code="bad_archive",
        ) from exc
    for path in to.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o700)
    return to


def _small(tar: tarfile.TarFile, archive: Path) -> list[tarfile.TarInfo]:
    members, size = [], 0
    for member in tar:
        members.append(member)
        size += member.size
        if len(members) > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"{archive} holds more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB, and every run has a copy",
                hint="leave out what is no script; data belong into workload.sources",
                code="large_directory",
            )
    return members
