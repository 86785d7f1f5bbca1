"""Write a wheel or a source archive again with nothing in it of the machine that built it.

Times are one given instant, owners are nobody, modes are 0644 or 0755, and files stand in the order of their names.
What the files hold is untouched, so that a wheel's own list of checksums stays true.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import zipfile
from pathlib import Path

# A zip archive knows no time before.
_FIRST_ZIP_TIME = 315532800


def normalise_archive(path: Path, epoch: int) -> None:
    """Replace an archive by its normal form."""
    if path.suffix == ".whl":
        path.write_bytes(_rewrite_zip(path, epoch))
    elif path.name.endswith(".tar.gz"):
        path.write_bytes(_rewrite_tar(path, epoch))
    else:
        raise ValueError(f"{path.name} is neither a wheel nor a source archive")


def _rewrite_zip(path: Path, epoch: int) -> bytes:
    out = io.BytesIO()
    at = time.gmtime(max(epoch, _FIRST_ZIP_TIME))[:6]
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
        # The metadata last, as the format of wheels recommends.
        for member in sorted(before.infolist(), key=lambda one: (".dist-info/" in one.filename, one.filename)):
            entry = zipfile.ZipInfo(member.filename, at)
            entry.external_attr = (0o100000 | _mode(member.external_attr >> 16)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            after.writestr(entry, before.read(member))
    return out.getvalue()


def _rewrite_tar(path: Path, epoch: int) -> bytes:
    out = io.BytesIO()
    with (
        tarfile.open(path) as before,
        gzip.GzipFile("", "wb", 9, out, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda one: one.name):
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.linkname, entry.size = member.type, member.linkname, member.size
            entry.mtime, entry.mode = epoch, 0o755 if member.isdir() else _mode(member.mode)
            after.addfile(entry, before.extractfile(member) if member.isreg() else None)
    return out.getvalue()


def _mode(found: int) -> int:
    return 0o755 if found & 0o100 else 0o644
