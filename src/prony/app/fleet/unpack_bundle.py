"""Unpack the experiments that people send: checked and summarised, in a process beside the server."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from prony.app.fleet.unpack_result import summarise_brought
from prony.app.fleet.work_pool import Trade, WorkPool
from prony.app.fleet.work_process import work
from prony.errors import InputError, StoreError
from prony.model.estimate import Summary
from prony.recipe.formats import parse_any
from prony.store import result_tar
from prony.store.bundle import EXPERIMENT, MANIFEST, Bundle
from prony.store.transfer import read_checked

# An experiment may have thousands of jobs, each with a folder of some files.
_MOST_FILES = 400_000


@dataclass(frozen=True)
class BundleOrder:
    """`folder`: where to unpack it; it is new."""

    tar: Path
    folder: Path
    sha256: str


@dataclass(frozen=True)
class UnpackedBundle:
    """An experiment that is whole and safe, in its folder, with the summary of each of its results."""

    bundle: Bundle
    summaries: tuple[Summary, ...]


def unpack_bundle(order: BundleOrder) -> UnpackedBundle:
    """Check, unpack and summarise an experiment; of one that is refused nothing stays."""
    if result_tar.measure_tar(order.tar).sha256 != order.sha256.lower():
        raise InputError(
            "the experiment that arrived does not have the SHA-256 in its name",
            hint="send it again, under the SHA-256 of its bytes",
            code="damaged",
        )
    try:
        result_tar.unpack(order.tar, order.folder, most_files=_MOST_FILES)
        bundle = _read_sent(_find_export(order.folder))
        summaries = tuple(summarise_brought(contents) for contents in bundle.results)
    except BaseException:
        shutil.rmtree(order.folder, ignore_errors=True)
        raise
    # The samples were looked at, and need not travel to the server.
    light = tuple(replace(contents, samples=None) for contents in bundle.results)
    return UnpackedBundle(replace(bundle, results=light), summaries)


def _find_export(folder: Path) -> Path:
    """Return the folder that is an export: what was unpacked, or the one folder in it, as in the tar of a server."""
    inner = list(folder.iterdir())
    is_inner = len(inner) == 1 and any((inner[0] / name).is_file() for name in (EXPERIMENT, MANIFEST))
    return inner[0] if is_inner else folder


def _read_sent(folder: Path) -> Bundle:
    """Read what was sent; a refusal does not name the server's own folder, which its sender does not know."""
    try:
        return read_checked(folder, _check_text)
    except InputError as exc:
        if str(folder) not in exc.message:
            raise
        message = exc.message.replace(str(folder), "what was sent")
        raise InputError(message, hint=exc.hint, code=exc.code) from exc


def _check_text(text: str, name: str) -> None:
    parse_any(text, name)


def _lost() -> StoreError:
    return StoreError(
        "the process that unpacks experiments ended while it read this one",
        hint="memory may have run out; check the server's log, and give it more memory",
        code="unpacker_lost",
    )


UNPACKING: Trade[BundleOrder, UnpackedBundle] = Trade(
    "unpacks experiments", "prony.app.fleet.unpack_bundle", unpack_bundle, on_loss=_lost, on_limit=_lost
)


class BundleOpeners(WorkPool[BundleOrder, UnpackedBundle]):
    """The processes in which a server opens experiments that people send."""

    def __init__(self, most: int) -> None:
        super().__init__(UNPACKING, most)


def main() -> None:
    from prony.ports.workload import load_parts

    load_parts("summary")
    work(unpack_bundle)
