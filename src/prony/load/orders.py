"""What one client process must do: written as files by the generator, read by the process.

All processes share one file of request bytes with one of offsets; each has its own order (JSON) and, in an open load,
its own two files: which indices are its, and when each is due. Numbers are plain int64.
"""

from __future__ import annotations

import json
import mmap
import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import InputError
from prony.ports.driver import Endpoint, Request, Stamps

# Up to here all requests are held as bytes; beyond, each is cut from the mapped file when it is sent.
_HELD_BYTES = 2**23


@dataclass(frozen=True)
class ClientOrder:
    """One process's share. `process` of `processes` sends the indices that leave that remainder."""

    endpoint: Endpoint
    address: tuple[int, Any]  # the family, and what `connect` wants
    wire: str
    wire_options: Mapping[str, Any]
    keeps: bool
    process: int
    processes: int
    folder: str
    name: str
    is_open: bool
    steps: Sequence[tuple[int, int]] = ()
    think_ns: int = 0
    burst: int = 1
    duration_ns: int | None = None
    limit_ns: int | None = None
    count: int | None = None
    each: int | None = None  # requests of each user
    at_least: int = 0
    most_in_flight: int | None = None
    lines: int = 1  # opened before the load begins
    most_lines: int = 1  # as many as it may come to, where that is known
    timeout_ns: int = 60 * 10**9
    drain_ns: int = 30 * 10**9
    sessions: bool = False
    salt: str = ""  # of this run; empty: every prompt is sent as it was made
    first_here: int = 0  # so many of this machine, this one too, run before ordinary processes, where they may

    def file(self, what: str) -> Path:
        return Path(self.folder) / f"{self.name}.{what}"

    def shared_file(self, what: str) -> Path:
        return Path(self.folder) / what

    def write(self) -> Path:
        path = self.file("json")
        # It may hold a password, and the requests hold keys.
        with open(path, "w", opener=_private) as stream:
            json.dump(asdict(self), stream)
        return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read_order(path: Path) -> ClientOrder:
    data = json.loads(path.read_text())
    family, place = data["address"]
    address = (family, tuple(place) if isinstance(place, list) else place)
    return ClientOrder(**{**data, "endpoint": Endpoint(**data["endpoint"]), "address": address})


def write_requests(requests: Sequence[Request], folder: Path) -> None:
    """Write the bytes of all requests, where each begins, and which one each must follow (-1: none)."""
    offsets = np.zeros(len(requests) + 1, np.int64)
    np.cumsum([len(request.content) for request in requests], out=offsets[1:])
    with open(folder / "requests.bytes", "wb", opener=_private) as stream:
        for request in requests:
            stream.write(request.content)
    offsets.tofile(folder / "requests.offsets")
    after = np.array([-1 if request.after is None else request.after for request in requests], np.int64)
    early = np.flatnonzero(after >= np.arange(len(after)))
    if early.size:
        raise InputError(
            f"request {early[0]} must come after request {after[early[0]]}, but comes before it",
            hint="put the turns of a session in the order in which they are sent",
        )
    after.tofile(folder / "requests.after")


def content_of(folder: Path) -> tuple[Callable[[int], bytes], int]:
    """Return how the bytes of a request are had by its number, and how many there are."""
    offsets = read_numbers(folder / "requests.offsets")
    count = len(offsets) - 1
    with (folder / "requests.bytes").open("rb") as stream:
        if offsets[-1] + 40 * count <= _HELD_BYTES:
            text = stream.read()
            held = [text[offsets[number] : offsets[number + 1]] for number in range(count)]
            return held.__getitem__, count
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return lambda number: mapped[offsets[number] : offsets[number + 1]], count


def read_numbers(path: Path) -> array[int]:
    """Return a file of int64 as numbers that are fast to look up one by one."""
    found: array[int] = array("q")
    with path.open("rb") as stream:
        found.fromfile(stream, os.fstat(stream.fileno()).st_size // 8)
    return found


def sessions_of(order: ClientOrder) -> list[tuple[int, ...]]:
    """Return the requests as chains, in the order of their first ones: each follows the one before it."""
    after = read_numbers(order.shared_file("requests.after"))
    chains: dict[int, list[int]] = {}
    chain_of: dict[int, list[int]] = {}
    for number, before in enumerate(after):
        chain = chain_of[before] if before >= 0 else chains.setdefault(number, [])
        chain.append(number)
        chain_of[number] = chain
    return [tuple(chain) for chain in chains.values()]


def roots(after: Stamps) -> Stamps:
    """Return for each request the first one of its session."""
    found = np.arange(len(after), dtype=np.int64)
    for number in np.flatnonzero(after >= 0).tolist():
        found[number] = found[after[number]]
    return found
