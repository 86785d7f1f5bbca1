"""Model source for local files, which are used in place."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import ClassVar

from prony.errors import InputError, NotFoundError, StoreError
from prony.plugins.models.formats import check_ending, companion_names
from prony.plugins.models.kept_copies import KeptCopies
from prony.ports.models import FetchOptions, ModelFiles, ModelPolicy, Progress, policy_error
from prony.runner.checksum import is_right, verify


class FileSource:
    """A plain path, or `file:PATH`; relative to the recipe's folder."""

    scheme: ClassVar[str] = "file"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        # First of all: what lies outside the allowed folders must not even be known to exist.
        options.policy.check_path(_reference_path(reference, options.base), reference)
        path = _existing_path(reference, options.base)
        _check_folder(path, options.formats)
        check_ending(path.name, options.formats)
        try:
            files = _inside(path) if path.is_dir() else (path, *_beside(path))
            for item in files:
                options.policy.check_path(item, reference)
            size = sum(item.stat().st_size for item in files)
            _check_size(size, reference, options.policy)
            files = _find_version(path, files, options)
        except OSError as exc:
            raise InputError(
                f"cannot read the model at {path}: {exc.strerror}", hint="check the file's permissions"
            ) from exc
        progress(size, size)
        return ModelFiles(path=files[0] if path.is_file() else path, files=files)


def _find_version(path: Path, files: tuple[Path, ...], options: FetchOptions) -> tuple[Path, ...]:
    """Return the files as they are, or, where the recipe asks for a version that was here before, the copy of it."""
    copies = KeptCopies(options.cache, path)
    wanted = options.checksum
    if wanted is not None and path.is_file() and (kept := copies.find(wanted)) and not is_right(files, wanted):
        return kept
    verify(files, wanted, source=str(path))
    if path.is_file() and 0 < sum(item.stat().st_size for item in files) <= options.policy.keep_bytes:
        try:
            copies.add(files)
        except OSError as exc:
            raise StoreError(
                f"cannot keep a copy of {path} in {options.cache}: {exc.strerror or exc}",
                hint="check the free disk space and the permissions of the cache",
            ) from exc
    return files


def _reference_path(reference: str, base: Path) -> Path:
    """Return the absolute path that a reference means, whether it exists or not."""
    if reference.startswith("file://"):
        raise InputError(
            f"{reference} is a URL, which is ambiguous here",
            hint=f"write the path itself: {reference.removeprefix('file://') or 'model.onnx'}",
        )
    text = reference.removeprefix("file:")
    if not text or "\0" in text:
        raise InputError(f"{reference!r} is not a path", hint="write the path of a model file")
    try:
        return (base / Path(text).expanduser()).absolute()
    except RuntimeError as exc:  # an unknown user's home
        raise _lost(reference, exc) from exc


def _existing_path(reference: str, base: Path) -> Path:
    """Return the absolute path that a reference means, which exists."""
    path = _reference_path(reference, base)
    try:
        if not path.exists():
            raise NotFoundError(f"model not found: {path}", hint=_near(path), code="unknown_model")
    except OSError as exc:  # a name that is too long, a folder that is closed
        raise _lost(reference, exc) from exc
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is a pipe or a device", hint="use a normal file")
    return path


def _check_folder(path: Path, formats: tuple[str, ...]) -> None:
    """Refuse a folder that is no model: some formats are folders, and their names say so."""
    if formats and path.is_dir() and not path.name.lower().endswith(formats):
        inside = sorted(item.name for item in path.iterdir() if item.name.lower().endswith(formats))[:3]
        hint = (
            f"choose a model in it: {', '.join(str(path / name) for name in inside)}"
            if inside
            else "write the path of a model file"
        )
        raise InputError(f"{path} is a folder", hint=hint, code="format_unavailable")


def _lost(reference: str, reason: Exception) -> InputError:
    return InputError(f"{reference!r} cannot be opened: {reason}", hint="write the path of a model file")


def _check_size(size: int, reference: str, policy: ModelPolicy) -> None:
    if policy.max_bytes is not None and size > policy.max_bytes:
        raise policy_error(f"{reference} is larger than the {policy.max_bytes} bytes allowed here", "--model-max-bytes")


def _near(path: Path) -> str:
    """Say what is nearest to a path that does not exist."""
    if not path.parent.is_dir():
        return f"folder not found: {path.parent}"
    names = sorted(item.name for item in path.parent.iterdir())
    same_kind = [name for name in names if path.suffix and name.endswith(path.suffix)]
    # Of a file without that ending only a slip of the finger is likely.
    near = difflib.get_close_matches(path.name, same_kind, n=3, cutoff=0.5)
    found = near or difflib.get_close_matches(path.name, names, n=3, cutoff=0.7) or same_kind[:3]
    return f"did you mean {' or '.join(found)}?" if found else f"{path.parent} has no file with a similar name"


def _inside(folder: Path) -> tuple[Path, ...]:
    files = tuple(sorted(item for item in folder.rglob("*") if item.is_file()))
    if not files:
        raise InputError(
            f"{folder} is an empty folder", hint="write the path of a model file, or of a package such as .mlpackage"
        )
    return files


def _beside(path: Path) -> tuple[Path, ...]:
    """Return the other files of the model, each of which must be there."""
    files = tuple(path.parent / name for name in companion_names(path))
    for item in files:
        if not item.is_file():
            raise NotFoundError(
                f"{path.name} has its weights in {item.name}, but {item} is missing",
                hint="copy it next to the model, under the same name",
                code="missing_weights",
            )
    return files
