"""Delete folders by renaming them first, so that no half-removed folder is left in place."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from prony.errors import StoreError
from prony.store.home import Home


def remove(home: Home, folder: Path) -> None:
    """Take a folder out of its place at once, then remove it. The caller holds the home's lock."""
    if not folder.exists():
        return
    away = staging(home)
    try:
        folder.rename(away)
        shutil.rmtree(away)
    except OSError as exc:
        raise StoreError(f"cannot remove {folder}: {exc.strerror}", hint="the next command tries again") from exc


def staging(home: Home) -> Path:
    """Return a fresh name among the folders that are on their way."""
    try:
        home.moving.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(f"cannot make {home.moving}: {exc.strerror}", hint="check that you may write there") from exc
    return home.moving / uuid.uuid4().hex


def has_leftovers(home: Home) -> bool:
    return home.moving.is_dir() and any(home.moving.iterdir())


def sweep(home: Home) -> None:
    """Remove what a crash left on its way. The caller holds the home's lock, so nothing of it is in use."""
    if home.moving.is_dir():
        # Errors pass: rubbish that cannot be removed now harms nobody, and the next open tries again.
        for leftover in home.moving.iterdir():
            shutil.rmtree(leftover, ignore_errors=True)
