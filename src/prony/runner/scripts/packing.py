"""Pack a script folder into a reproducible tar, and unpack it again."""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

from prony.errors import InputError, NotFoundError
from prony.runner.scripts.archive import unpack_archive
from prony.runner.scripts.folders import check_links, files_of, root_of

REFERENCE = re.compile(r"sha256:([0-9a-f]{64})")
MOST_BYTES = 576 * 2**20  # of the tar: what a folder may hold, and its headers


def pack_folder(folder: Path, to: Path) -> str:
    """Write the files of a folder into a tar; return its SHA-256. One that is a tar already is taken as it is."""
    if folder.suffix == ".tar" and folder.is_file():
        to = folder
    else:
        if folder.is_dir():
            check_links(folder)
        with tarfile.open(to, "w", format=tarfile.PAX_FORMAT) as archive:
            for path in files_of(folder):
                member = tarfile.TarInfo(path.relative_to(root_of(folder)).as_posix())
                member.size = path.stat().st_size
                member.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                with path.open("rb") as content:
                    archive.addfile(member, content)
    with to.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_scripts(directory: str, cache: Path) -> Path:
    """Return where the folder of a script lies: at its path, or among those that came by their checksum."""
    found = REFERENCE.fullmatch(directory)
    if found is None:
        return Path(directory)
    path = cache / "scripts" / found[1]
    if not path.is_dir():
        raise NotFoundError(
            f"the scripts {directory} are not here",
            hint="an agent fetches them from its server; here, name the folder itself",
            code="no_scripts",
        )
    return path


def unpack_scripts(tar: Path, sha256: str, cache: Path) -> Path:
    """Unpack scripts that arrived into their place, in one step; what is not what it should be is refused."""
    place = cache / "scripts" / sha256
    if place.is_dir():
        return place
    with tar.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise InputError(f"the scripts that arrived are not sha256:{sha256}", code="damaged")
    fresh = tar.with_name(f"{tar.name}.unpacked")
    unpack_archive(tar, fresh)
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(place)
    return place


def directory_of(directory: str, base: Path) -> Path:
    """Return the folder, or its archive; where the archive is not there, the folder that it would be made of."""
    path = base / Path(directory).expanduser()
    unpacked = path.with_suffix("")
    return (unpacked if path.suffix == ".tar" and not path.exists() and unpacked.is_dir() else path).absolute()
