"""Fetch a model's files into the cache once for all processes, and check them before they are used."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from prony.errors import InputError, StoreError
from prony.plugins.models.addresses import Address, is_public
from prony.plugins.models.blobs import Blobs
from prony.plugins.models.formats import check_ending, companion_names
from prony.plugins.models.lock import hold_lock
from prony.plugins.models.transfer import TransferLimits, Validators, show_url
from prony.ports.models import FetchOptions, ModelFiles, Progress
from prony.runner.checksum import is_right, verify
from prony.runner.onnx_file import is_inside

# A reference, where its bytes go, the limits and what is known of it in; None where it is still what is known.
Transfer = Callable[[str, Path, TransferLimits, Validators | None], Validators | None]


@dataclass
class Fetching:
    """One reference on its way. `may_reach` is asked only where the policy keeps private networks out."""

    transfer: Transfer
    options: FetchOptions
    progress: Progress
    pause: Callable[[float], None]
    may_reach: Callable[[Address], bool]
    spent: int = 0  # of what may be brought, over all files of a model

    def files(self, reference: str) -> ModelFiles:
        """Return the files, from the cache where the checksum or the server says that they are right, else new ones."""
        filename = filename_of(reference)
        check_ending(filename, self.options.formats)
        blobs = Blobs(self.options.cache)
        with hold_lock(blobs.lock(reference)):
            try:
                files = self._find_cached(reference, filename, blobs)
            except OSError as exc:
                raise StoreError(
                    f"cannot store {show_url(reference)} in {self.options.cache}: {exc}",
                    hint="check free disk space and whether the folder is writable",
                ) from exc
        size = sum(path.stat().st_size for path in files)
        self.progress(size, size)
        return ModelFiles(path=files[0], files=files)

    def limits(self) -> TransferLimits:
        def done(size: int, total: int | None) -> None:
            self.progress(self.spent + size, None if total is None else self.spent + total)

        allowed = self.options.policy.max_bytes
        return TransferLimits(
            max_bytes=self.options.max_bytes - self.spent,
            allowed_bytes=None if allowed is None else allowed - self.spent,
            may_reach=None if self.options.policy.private else self.may_reach,
            timeout_s=self.options.timeout_s,
            done=done,
            pause=self.pause,
            is_checked=self.options.checksum is not None,
            may_be_plain=self.options.may_be_plain,
            is_plain_within=self.options.policy.private_plain,
        )

    def _find_cached(self, reference: str, filename: str, blobs: Blobs) -> tuple[Path, ...]:
        expected = self.options.checksum
        if expected is not None and expected.startswith("sha256:"):
            return blobs.by_checksum(expected, filename) or self._fresh(reference, filename, blobs)
        known = blobs.by_url(reference)
        if known is None or (expected is not None and not is_right(known[1], expected)):
            return self._fresh(reference, filename, blobs)
        entry, files = known
        if expected is not None:
            return files
        return self._fresh(reference, filename, blobs, known=Validators(entry.etag, entry.modified)) or files

    def _fresh(
        self, reference: str, filename: str, blobs: Blobs, *, known: Validators | None = None
    ) -> tuple[Path, ...]:
        """Bring the model, check it and keep it; () when the server still has the version that is known."""
        folder = blobs.staging(reference)
        main = folder / filename
        try:
            found = self.transfer(reference, main, self.limits(), known)
            if found is None:
                folder.rmdir()
                return ()
            files = (main, *self._companions(reference, main))
            verify(files, self.options.checksum, source=show_url(reference))
            kept = blobs.keep(reference, files, found)
        except InputError:
            shutil.rmtree(folder, ignore_errors=True)  # what was refused is not worth going on from
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return kept

    def _companions(self, reference: str, main: Path) -> list[Path]:
        """Bring what must lie beside the main file, from the same folder on the server."""
        files: list[Path] = []
        self.spent = main.stat().st_size
        for name in companion_names(main):
            path = main.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.transfer(f"{_folder_of(reference)}/{quote(name)}", path, self.limits(), None)
            self.spent += path.stat().st_size
            files.append(path)
        return files


def filename_of(reference: str) -> str:
    """Return the file's name from the end of the reference's path."""
    name = unquote(urlsplit(reference).path).rpartition("/")[2]
    if not is_inside(name) or "\\" in name:
        raise InputError(
            f"{show_url(reference)} does not end in a file name", hint="use the URL of the model file itself"
        )
    return name


def _folder_of(reference: str) -> str:
    """Return what a reference is in, without what was asked of it alone."""
    parts = urlsplit(reference)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}"


class NetworkSource:
    """A model source that fetches over a network."""

    def __init__(
        self, pause: Callable[[float], None] = time.sleep, may_reach: Callable[[Address], bool] = is_public
    ) -> None:
        self._pause = pause
        self._may_reach = may_reach

    def begin(self, transfer: Transfer, options: FetchOptions, progress: Progress) -> Fetching:
        """Return one reference on its way."""
        return Fetching(transfer, options, progress, self._pause, self._may_reach)
