"""Agent identity: one slot per process, with the same id and token after every restart.

Each agent of a home has a slot, a folder `agents/<slot>/` that its process holds a lock on. `agent.json` says which
server it belongs to, which id it has there, and its own token.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from prony.errors import ConflictError, InputError, StoreError
from prony.model.base import Noun
from prony.model.validation_words import describe_invalid
from prony.store.home import Home
from prony.store.lock import try_file_lock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_MOST_SLOTS = 1000


class Identity(Noun):
    """The contents of `agent.json`. A token is never sent to another server than the one that gave it."""

    server: str
    id: str | None = None
    token: str | None = None


@dataclass(frozen=True)
class Slot:
    """One agent's folder, held by this process."""

    name: str
    path: Path

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def file(self) -> Path:
        return self.path / "agent.json"

    def identity(self) -> Identity | None:
        """Return who this slot is, or None while it is nobody."""
        try:
            return Identity.read_json(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as exc:
            reason = describe_invalid(exc) if isinstance(exc, ValidationError) else exc
            hint = "restore it, or remove it and enrol this agent again"
            raise StoreError(f"cannot read {self.file}: {reason}", hint=hint) from exc

    def keep(self, identity: Identity) -> None:
        """Write who this slot is, readable by nobody else, in one step."""
        unfinished = self.file.with_name(".agent.json.tmp")
        try:
            unfinished.unlink(missing_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(identity.model_dump(mode="json"), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.file)
        except OSError as exc:
            raise StoreError(
                f"cannot write {self.file}: {exc.strerror}", hint="check whether the disk is full or read-only"
            ) from exc


@contextmanager
def hold_slot(home: Home, *, server: str | None = None, name: str | None = None) -> Iterator[Slot]:
    """Hold a slot for as long as the block runs: the one that is named, or the first that is free.

    Free is one that no process holds and that belongs to this server or to none yet.
    """
    folder = home.create().root / "agents"
    for slot in _candidates(folder, name):
        slot.path.mkdir(parents=True, exist_ok=True)
        with try_file_lock(slot.path / "lock") as is_mine:
            if is_mine and _serves(slot, server, is_named=name is not None):
                yield slot
                return
        if name is not None:
            raise ConflictError(
                f"an agent named {name} already runs in {home.root}", hint="choose another --name, or stop it"
            )
    raise ConflictError(
        f"all {_MOST_SLOTS} agents of {home.root} run, or belong to another server",
        hint=f"use another PRONY_HOME, or remove the folders of old agents in {folder}",
    )


def _candidates(folder: Path, name: str | None) -> Iterator[Slot]:
    if name is not None:
        yield Slot(checked_name(name), folder / name)
        return
    for number in range(1, _MOST_SLOTS + 1):
        yield Slot(str(number), folder / str(number))


def _serves(slot: Slot, server: str | None, *, is_named: bool) -> bool:
    identity = slot.identity()
    if identity is None or server is None or identity.server == server:
        return True
    if not is_named:
        return False
    raise ConflictError(
        f"the agent {slot.name} belongs to {identity.server}, not to {server}",
        hint=f"choose another --name; if the server has moved, change its address in {slot.file}",
    )


def checked_name(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    hint = "use letters, digits, '.', '_' and '-', at most 100; it begins with a letter or digit"
    raise InputError(f"{text!r} is not a valid agent name", hint=hint)


def agent_name(slot: Slot, device_name: str) -> str:
    """Return the name that people see: the slot's own, or the device's, with a number from the second agent on."""
    if not slot.name.isdigit():
        return slot.name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", device_name).strip("-._")[:90] or "device"
    return plain if slot.name == "1" else f"{plain}-{slot.name}"


def new_incarnation() -> str:
    """Name this life of the process."""
    return secrets.token_hex(8)


def device_key(slot: Slot, *, is_shared: bool) -> str:
    """Return what all agents of this device have in common, so that one of them measures at a time.

    `is_shared` makes it the slot's own: then they measure at once, and disturb each other.
    """
    parts = [_machine_id(), platform.node()]
    if is_shared:
        parts += [str(slot.path.resolve())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _machine_id() -> str:
    for path in _MACHINE_IDS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text:
            return text
    node = uuid.getnode()
    # That bit is set where the number was made up for this process: another one would get another.
    return "" if node >> 40 & 1 else f"{node:012x}"
