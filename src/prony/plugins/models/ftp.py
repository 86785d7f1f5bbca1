"""Model source for `ftp://`: anonymous unless the URL names a user; broken transfers resume."""

from __future__ import annotations

import ftplib
import re
from pathlib import Path
from typing import ClassVar
from urllib.parse import SplitResult, unquote, urlsplit

from prony.errors import InputError, NotFoundError
from prony.model.loopback import is_loopback
from prony.plugins.models.addresses import private_host_error, resolve_host
from prony.plugins.models.fetching import NetworkSource
from prony.plugins.models.transfer import (
    BrokenError,
    TransferLimits,
    Validators,
    check_size,
    persistently,
    read_note,
    write_note,
)
from prony.ports.models import FetchOptions, ModelFiles, Progress

_BLOCK_BYTES = 2**16


class FtpSource(NetworkSource):
    """A file on an FTP server."""

    scheme: ClassVar[str] = "ftp"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        parts = _parts(reference)
        if not (options.may_be_plain or options.checksum or is_loopback(parts.hostname or "")):
            raise InputError(
                f"{_show_url(parts)} was not fetched: ftp has no protection against changes on the way",
                hint="set `workload.checksum`, or use https",
                code="insecure_url",
            )
        return self.begin(_download, options, progress).files(reference)


def _parts(reference: str) -> SplitResult:
    try:
        parts = urlsplit(reference)
        has_host = bool(parts.hostname) and (parts.port or 21) > 0
    except ValueError as exc:
        raise InputError(f"{reference!r} is not a URL: {exc}", hint="write ftp://host/path/file") from exc
    # A line break would be a command of its own.
    if not has_host or re.search(r"[\r\n\0]", unquote(reference)):
        raise InputError(f"{reference!r} is not the URL of a file", hint="write ftp://host/path/file")
    return parts


def _show_url(parts: SplitResult) -> str:
    return f"ftp://{parts.hostname}{parts.path}"


def _download(reference: str, part: Path, limits: TransferLimits, known: Validators | None) -> Validators | None:
    return persistently(_attempt, reference, part, limits, known)


def _attempt(reference: str, part: Path, note: Path, limits: TransferLimits, known: Validators) -> Validators | None:
    """Ask once, and write what comes."""
    parts = _parts(reference)
    path = unquote(parts.path).removeprefix("/")
    try:
        with ftplib.FTP(timeout=limits.timeout_s) as ftp:
            ftp.connect(_host(parts, limits), parts.port or 21)
            ftp.login(unquote(parts.username or ""), unquote(parts.password or ""))
            ftp.voidcmd("TYPE I")
            found, size = _version(ftp, path)
            if found == known and found.modified:
                return None
            begun = read_note(note)
            offset = part.stat().st_size if part.exists() and found.modified and begun == found else 0
            write_note(note, found)
            _retrieve(ftp, path, part, offset, size, limits)
    except ftplib.error_perm as exc:
        raise _refusal(parts, str(exc)) from exc
    except (EOFError, OSError, ftplib.Error) as exc:
        raise BrokenError(str(exc) or type(exc).__name__) from exc
    arrived = part.stat().st_size
    if size is not None and arrived != size:
        raise BrokenError(f"{arrived} of {size} bytes arrived")
    return found


def _host(parts: SplitResult, limits: TransferLimits) -> str:
    """Return what to connect to; where not everything may be reached, the very address that was looked at."""
    host = parts.hostname or ""
    if limits.may_reach is None:
        return host
    addresses = resolve_host(host, parts.port or 21)
    if not all(map(limits.may_reach, addresses)):
        raise private_host_error(host)
    return str(addresses[0])


def _version(ftp: ftplib.FTP, path: str) -> tuple[Validators, int | None]:
    """Return which version the server has, where it says so, and its size."""
    try:
        size = ftp.size(path)
    except ftplib.error_perm as exc:
        if not str(exc).startswith(("500", "502", "504")):  # it does not know the command
            raise
        size = None
    try:
        modified = ftp.voidcmd(f"MDTM {path}").partition(" ")[2].strip()
    except ftplib.error_perm:
        modified = ""
    return Validators(etag=str(size or ""), modified=modified), size


def _retrieve(ftp: ftplib.FTP, path: str, part: Path, offset: int, size: int | None, limits: TransferLimits) -> None:
    shown = f"ftp://{ftp.host}/{path}"
    check_size(shown, size or 0, limits)
    with part.open("r+b" if offset else "wb") as stream:
        stream.seek(offset)
        stream.truncate()

        def take(block: bytes) -> None:
            check_size(shown, stream.tell() + len(block), limits)
            stream.write(block)
            limits.done(stream.tell(), size)

        ftp.retrbinary(f"RETR {path}", take, blocksize=_BLOCK_BYTES, rest=offset or None)


def _refusal(parts: SplitResult, said: str) -> InputError:
    if said.startswith("530"):
        return InputError(f"{_show_url(parts)} needs a login: {said}", hint="write ftp://USER:PASSWORD@host/...")
    return NotFoundError(f"{_show_url(parts)} not found: {said}", hint="check the path", code="unknown_model")
