"""Check a .tar of scripts, and unpack it into a folder and nowhere else."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from pathlib import Path

from prony.errors import InputError
from prony.runner.scripts.folders import MOST_BYTES, MOST_FILES

_HINT = "make it with `tar -cf scripts.tar -C folder .`"
_DEEPEST = 64


def unpack_archive(archive: Path, to: Path) -> Path:
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
            hint=_HINT,
            code="bad_archive",
        ) from exc
    for path in to.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o700)
    return to


def check_archive(archive: Path) -> None:
    """Refuse a tar of scripts that no agent would unpack: by its headers alone, and nothing is written."""
    try:
        with tarfile.open(archive) as tar:
            for member in _small(tar, archive):
                _check_member(member)
    except tarfile.FilterError as exc:
        raise InputError(f"the archive holds what leads out of its folder: {exc}", code="bad_archive") from exc
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as exc:
        raise InputError(f"the archive cannot be read: {exc}", hint=_HINT, code="bad_archive") from exc


def _check_member(member: tarfile.TarInfo) -> None:
    # As it is unpacked: no device, no name and no link that leads out. The place is never touched.
    tarfile.data_filter(member, "/nowhere")
    parts = member.name.split("/")
    if len(parts) > _DEEPEST or not all(map(_is_name, parts)):
        raise InputError(
            f"the archive holds {member.name[:200]!r}, which is no name for a script's file",
            hint=_HINT,
            code="bad_archive",
        )


def _is_name(part: str) -> bool:
    return len(part.encode(errors="replace")) <= 255 and part.isprintable()


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
