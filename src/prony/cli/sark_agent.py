"""A device and a SARK in, what the one is told of the other and whether they reach each other out, as text or JSON."""

from __future__ import annotations

from dataclasses import asdict

from prony.agent.checks import sark_connection
from prony.agent.sark_device import capabilities_of, worker_device
from prony.agent.settings import SarkSettings
from prony.cli.output import print_json, print_text
from prony.model.agent import Capabilities


def show_worker(offered: Capabilities, *, as_json: bool) -> int:
    """Print the device in SARK's fields and its compute units in SARK's words."""
    words = capabilities_of(offered.engines)
    info = worker_device(offered.device).model_dump() if offered.device else {}
    if as_json:
        print_json({"device": info, "capabilities": list(words)})
        return 0
    known = {key: value for key, value in info.items() if value is not None}
    width = max(map(len, known), default=0)
    for key, value in known.items():
        print_text(f"{key:<{width}}  {value}")
    print_text("\nAvailable Compute Units:")
    for word in words:
        print_text(f"- {word}")
    return 0


def show_connection(sark: SarkSettings, *, as_json: bool) -> int:
    """Print how the orchestrator and its Redis were reached; exit code 3 where one of them was not."""
    found = sark_connection(sark)
    if as_json:
        print_json(asdict(found) | {"healthy": found.is_healthy and found.redis_error is None})
    else:
        print_text(f"orchestrator  {found.server}: {found.told}")
        redis = found.redis_error or f"reachable, {found.redis_round_trip_ms:.1f} ms away"
        print_text(f"redis         {found.redis}: {redis}")
    if found.status is None or found.redis_error is not None:
        return 3
    return 0 if found.is_healthy else 1
