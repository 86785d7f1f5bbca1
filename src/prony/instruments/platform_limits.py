"""What Prony does not promise on a system, for `prony doctor` and the documentation."""

from __future__ import annotations

import sys

from prony.model.base import Noun


class PlatformLimit(Noun):
    """Something that other systems do better. `text` says what it means for a measurement."""

    key: str
    title: str
    text: str


_UNTESTED = PlatformLimit(
    key="untested",
    title="this system",
    text="Prony is tested on Linux, and in part on macOS and Windows; other systems are untested",
)
_ORPHANS = PlatformLimit(
    key="orphans",
    title="processes left behind",
    text="a program that leaves its group and its parent is not found again; look for it after a failed service",
)
_PRIORITY = PlatformLimit(
    key="client_priority",
    title="clients of a load",
    text="they have no real-time priority; check how late requests were sent",
)
_STATE = PlatformLimit(
    key="machine_state",
    title="state of the machine",
    text="frequencies, temperatures, throttling and pressure are not read, so a disturbed result may be called valid",
)
_MACOS = (
    PlatformLimit(
        key="fork",
        title="isolation: fork",
        text="every repetition starts a new interpreter, as with isolation: exec; Accelerate and Metal abort in a fork",
    ),
    PlatformLimit(
        key="timestamps",
        title="times of packets",
        text="the kernel's times of packets are not used; latencies are from the client's own clock",
    ),
    PlatformLimit(
        key="timers",
        title="timers",
        text="the system delays timers to save power; connect the charger and keep the screen on",
    ),
    _ORPHANS,
    _PRIORITY,
    _STATE,
)
_WINDOWS = (
    PlatformLimit(
        key="fork",
        title="isolation: fork",
        text="every repetition starts a new interpreter, as with isolation: exec",
    ),
    PlatformLimit(
        key="server",
        title="prony server, scripts, services",
        text="not supported: use Linux, macOS or WSL; this machine can run commands, and agents for models",
    ),
    PlatformLimit(
        key="timers",
        title="open loads",
        text="timers tick every 15.6 ms by default, one process holds 512 connections: do not quote latencies",
    ),
    PlatformLimit(
        key="memory",
        title="peak memory of a model",
        text="it is not measured",
    ),
    _ORPHANS,
    _PRIORITY,
    _STATE,
)


def list_limits(platform: str = sys.platform) -> tuple[PlatformLimit, ...]:
    """Return what is not promised on a system; nothing on Linux."""
    known: dict[str, tuple[PlatformLimit, ...]] = {"linux": (), "darwin": _MACOS, "win32": _WINDOWS}
    return known.get(platform, (_UNTESTED, *_MACOS))
