"""Spool: keep leases and results on disk until the server has accepted them.

Each attempt has a folder `<job>.<attempt>/` here. While the job runs it holds `lease.json`, `job.json`, `log`, `stderr`
and the result `folder/`. When the result is packed it holds `result.tar` and `meta.json`, and waits to be sent.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony.errors import NotFoundError, StoreError
from prony.model.agent import DiskShortage
from prony.model.base import Noun
from prony.model.lease import Lease
from prony.model.states import PLACEMENT, check_transition
from prony.model.target import Placement
from prony.store.folder import read_noun
from prony.store.home import safe_id
from prony.store.result_tar import disk_told, pack, sync_folder

# Below this nothing new is begun: a job writes samples, and its result must be packed beside them.
LEAST_FREE_BYTES = 256 * 2**20
_MOST_REFUSED = 50


class Meta(Noun):
    """A packed result. `number` is its place in the order of sending; `late`: its lease may be over."""

    number: int
    lease_id: str
    job_id: str
    experiment_id: str
    attempt: int
    sha256: str
    size: int
    late: bool = False
    traceparent: str = ""


@dataclass(frozen=True)
class Work:
    """Where one attempt's things lie."""

    path: Path

    @property
    def lease_file(self) -> Path:
        return self.path / "lease.json"

    @property
    def job_file(self) -> Path:
        return self.path / "job.json"

    @property
    def folder(self) -> Path:
        return self.path / "folder"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def stderr(self) -> Path:
        return self.path / "stderr"

    @property
    def tar(self) -> Path:
        return self.path / "result.tar"

    @property
    def meta_file(self) -> Path:
        return self.path / "meta.json"

    @property
    def placement_file(self) -> Path:
        return self.path / "placement.json"

    @property
    def is_packed(self) -> bool:
        return self.meta_file.exists() and self.tar.exists()

    def lease(self) -> Lease:
        return read_noun(self.lease_file, Lease)

    def meta(self) -> Meta:
        return read_noun(self.meta_file, Meta)

    def find_placement(self) -> Placement | None:
        """Return where the attempt was placed, or is about to be; None where nothing was sent anywhere."""
        try:
            return read_noun(self.placement_file, Placement)
        except NotFoundError:
            return None

    def find_packed(self) -> Meta | None:
        """Return what is packed here, or None: also where the uploader's thread removes it in this moment."""
        try:
            return self.meta() if self.is_packed else None
        except NotFoundError:
            return None


class Spool:
    """One agent's results on their way. Blocking: call it from a thread."""

    def __init__(self, root: Path, *, least_free_bytes: int = LEAST_FREE_BYTES) -> None:
        self.root = root
        self.refused = root / "refused"
        self.least_free_bytes = least_free_bytes

    def begin(self, lease: Lease) -> Work:
        """Make a place for an attempt and write down what it is; one that is packed already is returned as it is."""
        work = Work(self.root / f"{safe_id(lease.job.id)}.{lease.attempt}")
        packed = work.find_packed()
        if packed is not None:
            if packed.lease_id == lease.id:
                return work
            self.refuse(
                work, f"the server lent the same attempt again, as lease {lease.id}, so this earlier result is not sent"
            )
        with disk_told(work.path):
            shutil.rmtree(work.path, ignore_errors=True)
            work.path.mkdir(parents=True)
            _write(work.job_file, lease.job)
            _write(work.lease_file, lease)
        return work

    def keep(self, work: Work, *, late: bool = False) -> Meta:
        """Pack the result folder; when this returns it is on the disk, and nothing but its loss can lose it."""
        lease = work.lease()
        parcel = pack(work.folder, work.tar)
        meta = Meta(
            number=self._next_number(),
            lease_id=lease.id,
            job_id=lease.job.id,
            experiment_id=lease.job.experiment_id,
            attempt=lease.attempt,
            traceparent=lease.traceparent,
            sha256=parcel.sha256,
            size=parcel.size,
            late=late,
        )
        with disk_told(work.path):
            _write(work.meta_file, meta)
            sync_folder(work.path)
            sync_folder(self.root)
        shutil.rmtree(work.folder, ignore_errors=True)
        return meta

    def keep_placement(self, work: Work, placement: Placement) -> None:
        """Write down what is about to be done with an attempt at a target, or was; refuse what cannot follow."""
        before = work.find_placement()
        if before is not None and before.phase is not placement.phase:
            check_transition(PLACEMENT, f"placement {placement.key}", before.phase, placement.phase)
        with disk_told(work.path):
            _write(work.placement_file, placement)

    def waiting(self) -> list[tuple[Work, Meta]]:
        """Return what is packed and not yet sent, oldest first; what cannot be read is set aside."""
        found = []
        for work in self._works():
            try:
                meta = work.find_packed()
            except StoreError as exc:
                with suppress(StoreError):  # tried again with the next look
                    self.refuse(work, exc.message)
                continue
            if meta is not None:
                found.append((work, meta))
        return sorted(found, key=lambda pair: pair[1].number)

    def find_unfinished(self) -> list[Work]:
        """Return the attempts that an earlier life of this agent left before their result was packed."""
        return [work for work in self._works() if not work.is_packed]

    def find_placed(self) -> list[tuple[Work, Placement]]:
        """Return what is at a target, or may be, packed or not."""
        found = ((work, work.find_placement()) for work in self._works())
        return [(work, placement) for work, placement in found if placement is not None]

    def remove(self, work: Work) -> None:
        """Forget an attempt. The mark goes first: what a crash leaves is then no result that waits."""
        with suppress(OSError):
            work.meta_file.unlink(missing_ok=True)
        shutil.rmtree(work.path, ignore_errors=True)

    def refuse(self, work: Work, reason: str) -> Path:
        """Set aside what the server does not want, with the reason; only the newest are kept."""
        place = self.refused / work.path.name
        with disk_told(place):
            self.refused.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            work.path.replace(place)
            with suppress(OSError):  # the reason stands in the log too
                (place / "reason").write_text(reason + "\n")
        kept = sorted(self.refused.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_MOST_REFUSED]:
            shutil.rmtree(path, ignore_errors=True)
        return place

    def check_room(self) -> None:
        """Refuse to begin where what is begun could not be kept."""
        shortage = self.shortage()
        if shortage is not None:
            raise StoreError(str(shortage), hint="free some space on this disk", code="disk_full")

    def shortage(self) -> DiskShortage | None:
        """Return by how much this disk is too full to begin a job, if it is."""
        with disk_told(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.root).free
        if free >= self.least_free_bytes:
            return None
        return DiskShortage(path=str(self.root), free_bytes=free, needed_bytes=self.least_free_bytes)

    def _works(self) -> list[Work]:
        if not self.root.is_dir():
            return []
        return [Work(path) for path in sorted(self.root.iterdir()) if path.is_dir() and path != self.refused]

    def _next_number(self) -> int:
        return max((meta.number for _, meta in self.waiting()), default=0) + 1


def _write(path: Path, noun: Noun) -> None:
    """Write a file that is whole or not there, on the disk when this returns."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as file:
        file.write(noun.model_dump_json(indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def lease_of(work: Work) -> Lease | None:
    """Return the lease of a leftover, or None where the crash came before it was written."""
    try:
        return work.lease()
    except (NotFoundError, StoreError):
        return None
