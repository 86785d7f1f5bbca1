"""Fetch a script's sources and link them where the script looks for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from prony.errors import InputError, PronyError
from prony.kinds.script.schema import ScriptSource
from prony.ports.models import FetchOptions, Progress
from prony.runner.context import RunContext
from prony.runner.models import source_of


@dataclass(frozen=True)
class FetchedSource:
    """One thing on this disk: `path` is a file or a folder, `files` all that it is made of.

    `stamps` tell whether somebody has changed a file of the cache; what lies on this disk anyway has none."""

    source: ScriptSource
    path: Path
    files: tuple[Path, ...]
    stamps: tuple[tuple[int, int], ...] = ()

    @property
    def is_vouched_for(self) -> bool:
        """Tell whether nobody on the way can have changed it unseen."""
        return self.source.checksum is not None or not self.source.source.startswith(("http://", "ftp://"))

    @property
    def is_whole(self) -> bool:
        """Tell whether it is meant to lie at a whole path, as in a container, and not below the script's folder."""
        return self.source.path.startswith(("/", "~"))


def fetch_sources(
    sources: Sequence[ScriptSource], around: RunContext, progress: Callable[[ScriptSource], Progress]
) -> list[FetchedSource]:
    """Bring everything to this disk; the first that cannot be brought is raised, and nothing is run without it."""
    return [_fetch_source(source, around, progress(source)) for source in sources]


def _fetch_source(source: ScriptSource, around: RunContext, progress: Progress) -> FetchedSource:
    reference = _reference(source.source)
    options = FetchOptions(
        cache=around.cache, formats=(), checksum=source.checksum, base=around.base, policy=around.policy,
        # Who sits at this machine may take what comes by a plain way, and is told; who submits to another may not.
        may_be_plain=source.checksum is not None or around.policy.schemes is None,
    )  # fmt: skip
    options.policy.check_scheme(reference)
    try:
        found = source_of(reference).fetch(reference, options, progress)
    except PronyError as exc:
        named = f"{source.name or source.path}: {exc.message}"
        raise type(exc)(named, hint=exc.hint, code=exc.code) from exc
    is_cached = found.path.is_relative_to(around.cache)
    return FetchedSource(source, found.path, found.files, _stamps(found.files) if is_cached else ())


def _reference(source: str) -> str:
    """Return the source as those who fetch know it: a URL of a file is its path."""
    parts = urlsplit(source)
    if parts.scheme != "file":
        return source
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"{source} names another machine", hint="write file:///path, with three slashes")
    return unquote(parts.path)


def _stamps(files: Sequence[Path]) -> tuple[tuple[int, int], ...]:
    return tuple((one.st_size, one.st_mtime_ns) for one in map(Path.stat, files))


def laid(things: Sequence[FetchedSource], folder: Path) -> None:
    """Lay each thing below a folder, whole paths too: links to what is on this disk, in folders of their own."""
    for thing in things:
        place = below(thing.source.path, folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        if thing.path.is_dir():
            _link_source(thing, place)
        else:
            _link(thing.path, _file_in(place, thing))


def below(path: str, folder: Path) -> Path:
    """Return where a path of a script lies in the folder that it runs in; what leads out of it is refused."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "~", ".")]
    if not parts or ".." in parts or "\0" in path:
        raise InputError(
            f"{path!r} is not a valid path for a source", hint="write a path such as data/mnist", code="recipe"
        )
    return folder.joinpath(*parts)


def _file_in(place: Path, thing: FetchedSource) -> Path:
    """Return where a file is laid: a path that ends in a slash, or a folder of the script, holds it under its name."""
    if thing.source.path.endswith("/") or place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return place / thing.path.name
    return place


def _link_source(thing: FetchedSource, place: Path) -> None:
    """Real folders with links in them: a script may then put files of its own beside."""
    place.mkdir(parents=True, exist_ok=True)
    for path in thing.files:
        link = place / path.relative_to(thing.path)
        link.parent.mkdir(parents=True, exist_ok=True)
        _link(path, link)


def _link(path: Path, link: Path) -> None:
    if link.is_symlink() or link.exists():
        raise InputError(
            f"the script's folder already has {link.name}, which is also the path of a source",
            hint="give the source another path",
            code="recipe",
        )
    link.symlink_to(path)


def replace_source_paths(text: str, things: Sequence[FetchedSource], folder: Path) -> str:
    """Return a word with each whole path of a source replaced by where the source lies without a container."""
    for thing in sorted(things, key=lambda one: -len(one.source.path)):
        if thing.is_whole:
            path = thing.source.path.rstrip("/")
            # As it stands: a backslash in a folder's name is no escape.
            place = str(below(path, folder)).replace("\\", "\\\\")
            text = re.sub(rf"(?<![\w./~-]){re.escape(path)}(?![\w.-])", place, text)
    return text


def find_changed(things: Sequence[FetchedSource]) -> list[str]:
    """Return what a script has changed in the cache; it is taken out of it, to be fetched again."""
    found = []
    for thing in things:
        for path, stamp in zip(thing.files, thing.stamps, strict=False):
            try:
                same = stamp == (path.stat().st_size, path.stat().st_mtime_ns)
            except FileNotFoundError:
                same = False
            if not same:
                found.append(thing.source.path)
                with suppress(OSError):
                    path.unlink(missing_ok=True)
    return list(dict.fromkeys(found))
