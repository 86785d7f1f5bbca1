"""Placements of this home: one file each, written before anything is sent to a target."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prony.errors import ConflictError, NotFoundError, StoreError
from prony.model.states import PLACEMENT, check_transition
from prony.model.target import Placement, PlacePhase
from prony.store.folder import read_noun
from prony.store.home import Home, safe_id
from prony.store.lock import hold_file_lock, try_file_lock

_CANCELLED = "cancelled"
_LOGS = ".logs"


class Placements:
    """What this home placed on other machines. An experiment's are changed by one process at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._root = home.root / "placements"

    def home_id(self) -> str:
        """Return eight characters that tell this home from any other; made when it is first asked for."""
        path = self._root / "home-id"
        if not path.exists():
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with hold_file_lock(self._root / "lock"):
                if not path.exists():
                    _replace(path, secrets.token_hex(4))
        return path.read_text(encoding="ascii").strip()

    def folder(self, experiment_id: str) -> Path:
        """Return where an experiment's placements lie, with what is on its way there and back."""
        return self._root / safe_id(experiment_id)

    @contextmanager
    def own(self, experiment_id: str) -> Iterator[None]:
        """Be the only process that changes an experiment's placements while the block runs.

        Raises:
            ConflictError: another process does.
        """
        with self.try_own(experiment_id) as taken:
            if not taken:
                raise ConflictError(
                    f"another command follows experiment {experiment_id} already", hint="wait for it, or end it"
                )
            yield

    @contextmanager
    def try_own(self, experiment_id: str) -> Iterator[bool]:
        """Own an experiment's placements while the block runs; False where another process does."""
        folder = self.folder(experiment_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with try_file_lock(folder / "lock") as taken:
            yield taken

    def logs_folder(self, placement: Placement) -> Path:
        """Return where the logs of a placement's jobs lie while they run there."""
        return self.folder(placement.experiment_id) / f"{placement.key}{_LOGS}"

    def remove_logs(self, experiment_id: str) -> None:
        """Remove the logs of an experiment; its placements stay, because something may still be at a target."""
        for folder in self.folder(experiment_id).glob(f"*{_LOGS}"):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, experiment_id: str) -> None:
        """Remove the record of an experiment's placements, of which nothing is at a target."""
        shutil.rmtree(self.folder(experiment_id))

    def mark_cancelled(self, experiment_id: str) -> None:
        """Write down that an experiment is to be stopped, for whoever follows it now or next."""
        _replace(self.folder(experiment_id) / _CANCELLED, "")

    def is_cancelled(self, experiment_id: str) -> bool:
        return (self.folder(experiment_id) / _CANCELLED).exists()

    def save(self, placement: Placement) -> Placement:
        """Write it down, in one step; refuse a phase that cannot follow the one that is written."""
        path = self.folder(placement.experiment_id) / f"{placement.key}.json"
        if path.exists():
            before = read_noun(path, Placement)
            if before.phase is not placement.phase:
                check_transition(PLACEMENT, f"placement {placement.key}", before.phase, placement.phase)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, placement.model_dump_json(indent=1))
        return placement

    def of(self, experiment_id: str) -> list[Placement]:
        """Return an experiment's placements, the first attempt first."""
        found = [read_noun(path, Placement) for path in self.folder(experiment_id).glob("prony-*.json")]
        return sorted(found, key=lambda placement: placement.attempt)

    def all(self) -> list[Placement]:
        """Return every placement that is kept, the newest last."""
        folders = [path for path in self._root.glob("*") if path.is_dir()]
        return sorted((one for folder in folders for one in self.of(folder.name)), key=lambda one: one.made_at)

    def of_agents(self) -> list[Placement]:
        """Return what stand-in agents of this home have at targets for servers; they alone change it."""
        found = []
        for path in sorted(self._home.root.glob("agents/*/spool/*/placement.json")):
            with suppress(NotFoundError):  # its agent is done with it in this moment
                found.append(read_noun(path, Placement))
        return found

    def open(self) -> list[Placement]:
        """Return those of which something may still be at their target."""
        return [one for one in self.all() if one.phase is not PlacePhase.CLEARED]


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
        unfinished.replace(path)
    except OSError as exc:
        raise StoreError(
            f"cannot write {path}: {exc.strerror}", hint="check whether the disk is full or read-only"
        ) from exc
