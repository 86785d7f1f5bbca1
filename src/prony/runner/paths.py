"""The gate for paths: what a job names on this disk must lie in a folder that the machine's owner allows.

A field that holds a path says so in its schema: `json_schema_extra={"path": KIND}`, in the recipe and in the options of
plug-ins alike. The kinds are those of `_READERS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from prony.model.job import Job
from prony.ports.models import ModelPolicy, scheme_of
from prony.ports.workload import kind_of
from prony.runner.script_folders import REFERENCE

_CERTIFICATES = ("ca", "sslrootcert")
# What stands between the words of a configuration or a command line.
_BETWEEN = re.compile(r"[\s=:,;\"']+")


@dataclass(frozen=True)
class NamedPath:
    """`where` is its place in the recipe, `written` what stands there, `path` the path in it."""

    where: str
    written: str
    path: str


def check_paths(job: Job, policy: ModelPolicy, base: Path) -> None:
    """Refuse a job that names a path outside the allowed folders; relative paths are relative to `base`.

    The error does not tell whether anything lies there.
    """
    if policy.folders is None:
        return
    for named in _named_paths(job):
        path = Path(named.path)
        policy.check_path(path if named.path.startswith("~") else base / path, f"{named.where}: {named.written}")


def _named_paths(job: Job) -> Iterator[NamedPath]:
    """Return every path that a job names."""
    for where, options in kind_of(job.workload).prepare.named_options(job):
        yield from _walk(where, options)
    yield from _walk("workload", job.workload)
    yield from _walk("load", job.load)


def path_kind(field: FieldInfo) -> str | None:
    """Return which kind of path a field says that it holds, if any."""
    extra = field.json_schema_extra
    kind = extra.get("path") if isinstance(extra, Mapping) else None
    return None if kind is None else str(kind)


def _walk(where: str, value: Any) -> Iterator[NamedPath]:
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            kind, inside = path_kind(field), getattr(value, name)
            if kind is None:
                yield from _walk(f"{where}.{name}", inside)
            elif inside is not None:
                yield from (NamedPath(f"{where}.{name}", str(inside), path) for path in _READERS[kind](inside))
    elif isinstance(value, Mapping):
        for name, inside in value.items():
            yield from _walk(f"{where}.{name}", inside)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inside in enumerate(value):
            yield from _walk(f"{where}[{number}]", inside)


def _whole(text: str) -> Iterator[str]:
    yield text


def _with_slash(text: str) -> Iterator[str]:
    """A program: a name without a slash is looked for on PATH."""
    if "/" in text:
        yield text


def _leading_out(text: str) -> Iterator[str]:
    """A name may have slashes, as those on Hugging Face have: it is a path where it leads somewhere else."""
    if text.startswith(("/", "~")) or ".." in PurePath(text).parts:
        yield text


def _reference(text: str) -> Iterator[str]:
    """A model, or a source of a script: a path, file:PATH, file://PATH or what another scheme fetches."""
    if text.startswith("file://"):
        yield unquote(urlsplit(text).path)
    elif scheme_of(text) == "file":
        yield text.removeprefix("file:")


def _scripts(text: str) -> Iterator[str]:
    """A folder of scripts; one that came with its checksum is in the agent's own cache."""
    if REFERENCE.fullmatch(text) is None:
        yield text


def _url(text: str) -> Iterator[str]:
    """An endpoint: a unix socket, and the file with the certificates that are trusted."""
    try:
        parts = urlsplit(text)
    except ValueError:  # refused, with a hint, by whoever reads it
        return
    if parts.scheme == "unix" and not (text.startswith("unix://{folder}/") and ".." not in text):
        yield unquote(parts.netloc + parts.path)
    for name, values in parse_qs(parts.query).items():
        if name in _CERTIFICATES:
            yield from values


def _words(value: Any) -> Iterator[str]:
    """Free text for an engine or a server, alone, listed or by name: a word of it that leads somewhere is a path."""
    if isinstance(value, Mapping):
        value = list(value.values())
    for item in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
        for word in _BETWEEN.split(item) if isinstance(item, str) else ():
            yield from _leading_out(word)


def _mounts(value: list[Any]) -> Iterator[str]:
    """Words for a container engine: of HOST:INSIDE the first is a path of this disk."""
    for item in value:
        for word in re.split(r"[\s=,]+", item) if isinstance(item, str) else ():
            yield from _leading_out(word.partition(":")[0])


_READERS: dict[str, Callable[[Any], Iterator[str]]] = {
    "True": _whole,
    "slash": _with_slash,
    "there": _leading_out,
    "name": _leading_out,
    "reference": _reference,
    "scripts": _scripts,
    "url": _url,
    "words": _words,
    "command": _words,
    "mounts": _mounts,
}
