"""What Prony does not promise on a system, for `prony doctor` and the documentation."""

from __future__ import annotations

import sys

from prony.model.base import Noun


class PlatformLimit(Noun):
    """Something that other systems do better. `text` says what it means for a measurement."""

    code: str
    title: str
    text: str


_UNTESTED = PlatformLimit(
    code="untested",
    title="this system",
    text="Prony is tested on Linux, and in part on macOS and Windows; nothing is known of others",
)
_ORPHANS = PlatformLimit(
    code="orphans",
    title="processes left behind",
    text="a program that leaves its group and its parent is not found again; look for it after a failed service",
)
_PRIORITY = PlatformLimit(
    code="client_priority",
    title="clients of a load",
    text="they have no real-time priority; check how late requests were sent",
)
_STATE = PlatformLimit(
    code="machine_state",
    title="state of the machine",
    text="frequencies, temperatures, throttling and pressure are not read; less makes a result suspect",
)
_MACOS = (
    PlatformLimit(
        code="fork",
        title="isolation: fork",
        text="every repetition starts a new interpreter, as with isolation: exec; Accelerate and Metal abort in a fork",
    ),
    PlatformLimit(
        code="timestamps",
        title="times of packets",
        text="the kernel's times of packets are not used; a client's own clock counts",
    ),
    PlatformLimit(
        code="timers",
        title="timers",
        text="the system delays timers to save power; keep it on mains power, and its screen awake",
    ),
    _ORPHANS,
    _PRIORITY,
    _STATE,
)
_WINDOWS = (
    PlatformLimit(
        code="fork",
        title="isolation: fork",
        text="every repetition starts a new interpreter, as with isolation: exec",
    ),
    PlatformLimit(
        code="server",
        title="prony server, scripts, services",
        text="not supported: use Linux, macOS or WSL; this machine can run agents for models and be asked by commands",
    ),
    PlatformLimit(
        code="timers",
        title="open loads",
        text="timers tick every 15.6 ms by default, one process holds 512 connections: do not quote latencies",
    ),
    PlatformLimit(
        code="memory",
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
