"""List and find the files of a result folder, and nothing outside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from prony.app.read_log import cut_letter, read_piece
from prony.errors import InputError, NotFoundError
from prony.model.log import LogPiece
from prony.model.result_files import ResultFile, ResultFiles

MOST_FILES = 2000
_SNIFFED = 4096


def list_files(job_id: str, folder: Path) -> ResultFiles:
    """Return the files of a result folder. Links and files that are being written (`.NAME.tmp`) are none of it."""
    found = sorted(_walk(folder, PurePosixPath()))
    return ResultFiles(
        job_id=job_id,
        files=tuple(_describe(folder, name) for name in found[:MOST_FILES]),
        left_out=max(len(found) - MOST_FILES, 0),
    )


def _walk(folder: Path, below: PurePosixPath) -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, below / entry.name)
            elif entry.is_file(follow_symlinks=False):
                yield str(below / entry.name)


def _describe(folder: Path, name: str) -> ResultFile:
    about = (folder / name).stat(follow_symlinks=False)
    return ResultFile(
        name=name,
        size_bytes=about.st_size,
        modified_at=datetime.fromtimestamp(about.st_mtime, UTC),
        is_text=is_text(folder / name),
    )


def is_text(path: Path) -> bool:
    """Does a file begin with text in UTF-8?"""
    with path.open("rb") as file:
        begin = file.read(_SNIFFED)
    if b"\0" in begin:
        return False
    try:
        begin[: len(begin) - cut_letter(begin)].decode()
    except UnicodeDecodeError:
        return False
    return True


def find_file(folder: Path, name: str) -> Path:
    """Return the path of a file that `list_files` names.

    Raises:
        NotFoundError: It is not in the folder, or only behind a link.
    """
    asked = PurePosixPath(name)
    path = folder / asked
    is_outside = asked.is_absolute() or any(part.startswith(".") for part in asked.parts)
    folders = [folder / one for one in asked.parents]
    # Of a link neither is true, wherever it leads.
    if is_outside or not all(_is(stat.S_ISDIR, one) for one in folders) or not _is(stat.S_ISREG, path):
        raise NotFoundError(f"the result has no file {name!r}", hint="`prony files JOB` lists them", code="no_file")
    return path


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    try:
        return kind(path.lstat().st_mode)
    except (OSError, ValueError):  # not there, or no name that a file can have
        return False


def read_file_text(folder: Path, name: str, offset: int) -> LogPiece:
    """Return a piece of a file as text that can be shown; `ended` where the file ends with it.

    Raises:
        NotFoundError: There is no such file.
        InputError: It is no text.
    """
    path = find_file(folder, name)
    if not is_text(path):
        raise InputError(f"{name} is not a text file", hint="download it", code="not_text")
    piece = read_piece(path, offset, is_over=True)
    return LogPiece(piece.text, piece.next_offset, ended=piece.next_offset >= path.stat().st_size)
