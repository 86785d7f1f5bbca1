"""A device in, what a SARK orchestrator is told of it out, as a page for a person or as JSON."""

from __future__ import annotations

from prony.agent.sark_device import capabilities_of, worker_device
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
    for word, (engine, unit) in words.items():
        print_text(f"- {word}  ({engine} on {unit})")
    return 0
