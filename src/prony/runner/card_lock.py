"""Hold a GPU for one repetition, so that no two jobs of this machine measure on it at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from prony.errors import StoreError
from prony.instruments.device.nvidia import handles, hash_serial, management, read_uuid

_PAUSE_S = 0.2
CARD_IS_HELD = "waiting for the GPU: another run of Prony uses it"


def card_of_unit(unit: str, uuids: list[str], environment: Mapping[str, str]) -> str | None:
    """Return the UUID of the card that an engine will use for a unit; None where that is not known beforehand.

    `uuids` are in the driver's order, which is that of the bus.
    """
    kind, _, wanted = unit.partition(":")
    name, _, number = kind.partition("-")
    if name not in ("cuda", "tensorrt") or environment.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID") != "PCI_BUS_ID":
        return None
    if wanted:
        return _of_prefix(wanted, uuids)
    visible = visible_cards(uuids, environment)
    index = int(number) if number.isdecimal() else 0
    return visible[index] if index < len(visible) else None


def visible_cards(uuids: list[str], environment: Mapping[str, str]) -> list[str]:
    """Return the cards that engines see, in their order; the driver ignores all names behind one that is wrong."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return uuids
    found: list[str] = []
    for word in map(str.strip, visible.split(",")):
        numbered = uuids[int(word) :][:1] if word.isdecimal() else []
        card = numbered[0] if numbered else _of_prefix(word, uuids) if word and not word.isdecimal() else None
        if card is None:
            break
        found.append(card)
    return found


def list_usable_cards() -> tuple[str, ...]:
    """Return the UUIDs of the NVIDIA cards that engines can use here."""
    return tuple(visible_cards(_list_uuids(), os.environ))


def _list_uuids() -> list[str]:
    return [read_uuid(management(), handle) for handle in handles()]


def _of_prefix(text: str, uuids: list[str]) -> str | None:
    found = [uuid for uuid in uuids if uuid.startswith(f"GPU-{text.removeprefix('GPU-')}")]
    return found[0] if len(found) == 1 else None


@contextmanager
def hold_card(unit: str, stop_asked: Callable[[], bool], on_wait: Callable[[], None]) -> Iterator[None]:
    """Wait until no other Prony of this user measures on the card of a unit, and keep it; others are not locked out.

    Nothing is held where the unit is no card that the driver shows, or where a stop is asked for while waiting.
    """
    uuids = [] if unit == "cpu" else _list_uuids()
    card = card_of_unit(unit, uuids, os.environ)
    if card is None:
        yield
        return
    try:
        lock = FileLock(_folder() / f"{hash_serial(card)}.lock", thread_local=False)
        _acquire(lock, stop_asked, on_wait)
    except OSError as exc:
        hint = "check that the folder for temporary files is writable"
        raise StoreError(f"cannot lock the GPU: {exc}", hint=hint, code="store_busy") from exc
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, stop_asked: Callable[[], bool], on_wait: Callable[[], None]) -> None:
    is_told = False
    while not stop_asked():
        try:
            lock.acquire(timeout=_PAUSE_S)
        except Timeout:
            if not is_told:
                on_wait()
            is_told = True
        else:
            return


def _folder() -> Path:
    """Return where the locks are: the same for all agents of a user, whatever their homes are."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"prony-cards-{owner}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
