"""`https://` in, the model's files out: downloaded once for all processes, checked before anyone sees them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, unquote, urljoin, urlsplit

from prony.errors import InputError, StoreError
from prony.plugins.models.addresses import Address, is_public
from prony.plugins.models.blobs import Blobs
from prony.plugins.models.companions import check_ending, companion_names
from prony.plugins.models.lock import locked
from prony.plugins.models.transfer import Limits, Validators, check_url, download
from prony.ports.models import FetchOptions, ModelFiles, Progress
from prony.run.checksum import verify
from prony.run.onnx_file import is_inside


@dataclass
class _Budget:
    """What may still be downloaded, over all files of a model."""

    options: FetchOptions
    progress: Progress
    pause: Callable[[float], None]
    may_reach: Callable[[Address], bool] | None
    spent: int = 0

    def limits(self) -> Limits:
        def done(size: int, total: int | None) -> None:
            self.progress(self.spent + size, None if total is None else self.spent + total)

        allowed = self.options.policy.max_bytes
        return Limits(
            max_bytes=self.options.max_bytes - self.spent,
            allowed_bytes=None if allowed is None else allowed - self.spent,
            may_reach=self.may_reach,
            timeout_s=self.options.timeout_s,
            done=done,
            pause=self.pause,
            is_checked=self.options.checksum is not None,
        )


class HttpsSource:
    """A model on a web server, with the files beside it that it needs."""

    scheme: ClassVar[str] = "https"

    def __init__(
        self, pause: Callable[[float], None] = time.sleep, may_reach: Callable[[Address], bool] = is_public
    ) -> None:
        self._pause = pause
        self._may_reach = may_reach  # asked only where the policy keeps private networks out

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        check_url(reference)
        filename = filename_of(reference)
        check_ending(filename, options.formats)
        blobs = Blobs(options.cache)
        with locked(blobs.lock(reference)):
            try:
                may_reach = None if options.policy.private else self._may_reach
                budget = _Budget(options, progress, self._pause, may_reach)
                files = self._files(reference, filename, blobs, budget)
            except OSError as exc:
                raise StoreError(
                    f"cannot keep {reference} in {options.cache}: {exc}",
                    hint="is the disk full, or the folder not writable?",
                ) from exc
        size = sum(path.stat().st_size for path in files)
        progress(size, size)
        return ModelFiles(path=files[0], files=files)

    def _files(self, url: str, filename: str, blobs: Blobs, budget: _Budget) -> tuple[Path, ...]:
        """Return files from the cache where the checksum or the server says that they are right, else new ones."""
        options = budget.options
        if options.checksum is not None:
            kept = blobs.by_checksum(options.checksum, filename)
            return kept or self._fresh(url, filename, blobs, budget)
        known = blobs.by_url(url)
        if known is None:
            return self._fresh(url, filename, blobs, budget)
        entry, files = known
        return self._fresh(url, filename, blobs, budget, known=Validators(entry.etag, entry.modified)) or files

    def _fresh(
        self, url: str, filename: str, blobs: Blobs, budget: _Budget, *, known: Validators | None = None
    ) -> tuple[Path, ...]:
        """Download the model, check it and keep it; () when the server still has the version that is known."""
        folder = blobs.staging(url)
        main = folder / filename
        try:
            found = download(url, main, budget.limits(), known=known)
            if found is None:
                folder.rmdir()
                return ()
            files = (main, *_companions(url, main, budget))
            verify(files, budget.options.checksum, source=url)
            kept = blobs.keep(url, files, found)
        except InputError:
            shutil.rmtree(folder, ignore_errors=True)  # what was refused is not worth going on from
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return kept


def filename_of(url: str) -> str:
    """Return the file's name from the end of the URL's path."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    if not is_inside(name) or "\\" in name:
        raise InputError(f"{url} does not end in a file name", hint="use the URL of the model file itself")
    return name


def _companions(url: str, main: Path, budget: _Budget) -> list[Path]:
    """Download what must lie beside the main file, from the same folder on the server."""
    files: list[Path] = []
    budget.spent = main.stat().st_size
    for name in companion_names(main):
        path = main.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        download(urljoin(url, quote(name)), path, budget.limits())
        budget.spent += path.stat().st_size
        files.append(path)
    return files
