"""The options of `prony agent` that have it serve a SARK orchestrator, and what its commands say of one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, ClassVar

from prony.ports.agent_link import CommandAnswer

if TYPE_CHECKING:
    from prony.compat.sark.agent.server import SarkServer
    from prony.model.agent import Capabilities
    from prony.model.device import EngineUnit


class SarkAgentLink:
    """A SARK orchestrator and its Redis, served instead of a Prony server."""

    title: ClassVar[str] = "a SARK"
    option: ClassVar[str] = "--sark"

    def add_options(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--sark", metavar="URL", nargs="?", const="http://localhost:5000",
            help="run jobs of a SARK orchestrator instead; without a URL, http://localhost:5000",
        )  # fmt: skip
        parser.add_argument("--redis-host", metavar="HOST", help="host of SARK's Redis (the orchestrator's)")
        parser.add_argument("--redis-port", metavar="PORT", type=int, default=6379, help="port of SARK's Redis (6379)")

    def add_info_options(self, parser: ArgumentParser) -> None:
        parser.add_argument("--sark", action="store_true", help="describe it as a SARK orchestrator sees it")

    def is_chosen(self, options: Namespace) -> bool:
        return isinstance(getattr(options, "sark", None), str)

    def read_options(self, options: Namespace) -> SarkServer:
        from prony.compat.sark.agent.server import read_server

        return read_server(options.sark, options.redis_host, options.redis_port)

    def describe_unit(self, unit: EngineUnit) -> str:
        return f"in a SARK campaign: {unit.seed_name}" if unit.seed_name else ""

    def describe_device(self, options: Namespace, offered: Capabilities) -> CommandAnswer | None:
        """Describe the device in SARK's fields and its compute units in SARK's words."""
        if not options.sark:
            return None
        from prony.compat.sark.agent.orchestrator_client import capabilities_of, worker_device

        words = capabilities_of(offered.engines)
        info = worker_device(offered.device).model_dump() if offered.device else {}
        known = {key: value for key, value in info.items() if value is not None}
        width = max(map(len, known), default=0)
        lines = [f"{key:<{width}}  {value}" for key, value in known.items()]
        lines += ["\nAvailable Compute Units:", *(f"- {word}" for word in words)]
        return CommandAnswer({"device": info, "capabilities": list(words)}, tuple(lines))
