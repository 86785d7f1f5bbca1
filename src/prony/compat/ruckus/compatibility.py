"""`prony ruckus-check`: say in the words of RUCKUS which agents of a server could run an experiment."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prony.client import Client
from prony.client.owner import find_owner_token
from prony.errors import InputError
from prony.model.agent import Agent
from prony.model.queue import Compatibility, Submission
from prony.ports.use_cases import iterate_pages
from prony.recipe import load
from prony.store.home import home, read_server_note


def arguments(parser: ArgumentParser) -> None:
    """Print which agents of a server can run an experiment, in the format of POST /agents/compatibility/check
    of RUCKUS."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="an ExperimentSpec, or any recipe")
    parser.add_argument("--server", metavar="URL", help="the server; default: PRONY_SERVER, or the one that runs here")


def command(options: Namespace) -> int:
    loaded = load(options.spec)
    with _connect(options.server) as client:
        submission = Submission(text=loaded.text, name=options.spec.name)
        found = client.recipes.compatibility(submission)
        agents = list(iterate_pages(client.agents.page))
    answer = describe_compatibility(loaded.recipe.name, found, agents, datetime.now(UTC))
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 0 if answer["compatible_agents_count"] else 1


def _connect(named: str | None) -> Client:
    note = read_server_note(home())
    url = named or os.environ.get("PRONY_SERVER") or (None if note is None or note.is_stale else note.url)
    if url is None:
        raise InputError("no server given, and none runs here", hint="use --server URL or set PRONY_SERVER")
    return Client(url, os.environ.get("PRONY_TOKEN") or find_owner_token(url, home()))


def describe_compatibility(
    name: str, found: Compatibility, agents: Sequence[Agent], checked_at: datetime
) -> dict[str, Any]:
    """Return what the check of RUCKUS answered: one AgentCompatibility for each agent, and how many can run it."""
    results = [_describe_agent(found, one) for one in agents]
    return {
        "compatibility_results": results,
        "experiment_name": name,
        "total_agents_checked": len(results),
        "compatible_agents_count": sum(one["can_run"] for one in results),
        "checked_at": checked_at.isoformat(),
    }


def _describe_agent(found: Compatibility, agent: Agent) -> dict[str, Any]:
    fits = [fit for lot in found.lots for fit in lot.agents if fit.agent_id == agent.id]
    lacks = dict.fromkeys(str(lack) for fit in fits for lack in fit.lacks)
    offers = agent.capabilities
    hardware = offers.device.hardware if offers.device is not None else None
    return {
        "agent_id": agent.id,
        "agent_name": agent.name,
        "can_run": bool(fits) and all(fit.fits for fit in fits),
        "available_capabilities": _texts(offers.facts.get("kinds")) + _texts(offers.facts.get("probe")),
        "missing_requirements": list(lacks),
        "supported_features": _texts(offers.facts.get("precision")),
        "warnings": [f"the agent is {agent.state.value}"] if agent.state.value not in ("active", "busy") else [],
        "hardware_summary": {} if hardware is None else {
            "cpu": hardware.cpu.model_dump(mode="json"), "memory_mib": hardware.memory_mib,
            "gpus": [gpu.model_dump(mode="json") for gpu in hardware.gpus],
        },
        "framework_versions": {one.name: one.version for one in offers.engines if one.version},
        "compatible_models": _texts(offers.facts.get("model")),
        "estimated_queue_time_seconds": None,
        "last_capability_check": agent.seen_at.isoformat(),
    }  # fmt: skip


def _texts(fact: object) -> list[str]:
    values = fact if isinstance(fact, tuple) else () if fact is None else (fact,)
    return [str(one) for one in values]
