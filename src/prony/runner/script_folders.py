"""Folders of scripts: listed, hashed, packed into a reproducible tar, checked and unpacked again."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from prony.errors import InputError, NotFoundError
from prony.ports.plugins import SHIMS, find_plugins
from prony.runner.checksum import sha256_of

MOST_FILES = 20_000
MOST_BYTES = 512 * 2**20
# Nobody's input: what tools leave beside the files that people write.
LEFT_OUT = {".git", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules"}
_OFFERED = {
    "prony/__init__.py": "prony.shims.package",
    "prony/emit.py": "prony.emit",
    "prony_emit.py": "prony.emit",  # the name by which the package prony-emit has it
}


def files_of(folder: Path) -> list[Path]:
    """Return the files that belong to a folder of scripts, in their order; refuse one that is too large to copy.

    A file stands for a folder with that file alone."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise InputError(
            f"folder or file not found: {folder}", hint="set workload.directory to the folder of the script's files",
            code="no_directory",
        )  # fmt: skip
    found, size = [], 0
    for path in _walk(folder):
        found.append(path)
        size += path.stat().st_size
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"{folder} has more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB: "
                "too much for a copy in each run",
                hint="use a folder with only the scripts; put data into workload.sources",
                code="large_directory",
            )
    return sorted(found)


def _check_links(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it: what lies there was never meant to travel."""
    root = folder.resolve()
    for path in _entries(folder):
        if path.is_symlink() and not _target(path).is_relative_to(root):
            raise InputError(
                f"{path} is a link to a place outside {folder}",
                hint="copy its target into the folder, remove the link, or put data into workload.sources",
                code="link_outside",
            )


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a circle: it leads nowhere, and is no file
        return link.parent.resolve()


def _entries(folder: Path) -> Iterator[Path]:
    """Return everything below a folder that belongs to it, links too and not followed."""
    for path in folder.iterdir():
        if path.name in LEFT_OUT or _is_virtual_environment(path):
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _entries(path)


def is_copied(folder: Path, file: str) -> bool:
    """Say whether a copy of a folder has what lies there at a relative path, if anything does."""
    parts = Path(os.path.normpath(file)).parts
    places = [folder.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    is_below = ".." not in parts and not any(place.is_symlink() for place in places[:-1])
    return is_below and not any(place.name in LEFT_OUT or _is_virtual_environment(place) for place in places)


def _is_virtual_environment(path: Path) -> bool:
    """Is it one, which works in its own place alone? A link is never followed, and what is closed is none."""
    return not path.is_symlink() and path.is_dir() and os.access(path / "pyvenv.cfg", os.R_OK)


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in _entries(folder) if path.is_file())


def digest_of(folder: Path, files: list[Path]) -> str:
    """Return `sha256:<hex>` of the names and contents of a folder's files, and of which can be run."""
    lines = "".join(
        f"{sha256_of(path)} {'x' if path.stat().st_mode & 0o100 else '-'} {path.relative_to(folder).as_posix()}\n"
        for path in files
    )
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def root_of(folder: Path) -> Path:
    """Return what the names of its files begin at: of a single file, the folder that it lies in."""
    return folder.parent if folder.is_file() else folder


def copy_files(folder: Path, files: list[Path], to: Path) -> None:
    """Make a fresh copy of a folder. Every file can be run, as those of an archive can: a script in a repository is
    often not marked as a program."""
    for path in files:
        place = to / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
        place.chmod(place.stat().st_mode | 0o111)


def offer(place: Path) -> Path:
    """Lay out what a script may import without installing it; return the folder for PYTHONPATH."""
    shims = {f"{name}/__init__.py": entry.module for name, entry in find_plugins(SHIMS).items()}
    for name, module in (_OFFERED | shims).items():
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(spec.origin, path)
    return place


_HINT = "create it with `tar -cf scripts.tar -C folder .`"
_DEEPEST = 64


def unpack_archive(archive: Path, to: Path) -> Path:
    """Unpack an archive; every file can be run, for archives of scripts seldom remember which should."""
    try:
        with tarfile.open(archive) as tar:
            members = _list_members(tar, str(archive))
            to.mkdir(parents=True)
            tar.extractall(to, members=members, filter="data")
    except tarfile.FilterError as exc:
        raise InputError(
            f"{archive} has entries outside its folder: {exc}",
            hint="pack it again with relative paths",
            code="bad_archive",
        ) from exc
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
            for member in _list_members(tar, "the archive"):  # its name here is the server's own
                _check_member(member)
    except tarfile.FilterError as exc:
        raise InputError(
            f"the archive has entries outside its folder: {exc}",
            hint="pack it again with relative paths",
            code="bad_archive",
        ) from exc
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as exc:
        raise InputError(f"the archive cannot be read: {exc}", hint=_HINT, code="bad_archive") from exc


def _check_member(member: tarfile.TarInfo) -> None:
    # As it is unpacked: no device, no name and no link that leads out. The place is never touched.
    tarfile.data_filter(member, "/nowhere")
    parts = member.name.split("/")
    if len(parts) > _DEEPEST or not all(map(_is_name, parts)):
        raise InputError(
            f"the archive has {member.name[:200]!r}, which is not a valid file name",
            hint=_HINT,
            code="bad_archive",
        )


def _is_name(part: str) -> bool:
    return len(part.encode(errors="replace")) <= 255 and part.isprintable()


def _list_members(tar: tarfile.TarFile, name: str) -> list[tarfile.TarInfo]:
    """Return what an archive holds, or refuse one that is too large; `name` is what the message calls it."""
    members, size = [], 0
    for member in tar:
        members.append(member)
        size += member.size
        if len(members) > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"{name} has more than {MOST_FILES} files or {MOST_BYTES // 2**20} MiB: "
                "too much for a copy in each run",
                hint="keep only the scripts; put data into workload.sources",
                code="large_directory",
            )
    return members


REFERENCE = re.compile(r"sha256:([0-9a-f]{64})")
MOST_TAR_BYTES = 576 * 2**20  # of the tar: what a folder may hold, and its headers


def pack_folder(folder: Path, to: Path) -> str:
    """Write the files of a folder into a tar; return its SHA-256. One that is a tar already is taken as it is."""
    if folder.suffix == ".tar" and folder.is_file():
        to = folder
    else:
        if folder.is_dir():
            _check_links(folder)
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
            f"the scripts {directory} are not on this machine",
            hint="only an agent can fetch them, from its server; to run them here, write the path of the folder",
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
            text = f"the scripts arrived damaged: their checksum is not sha256:{sha256}"
            raise InputError(text, hint="submit the recipe again", code="damaged")
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
