"""The options of `prony server` that have it speak SARK's API too."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.errors import InputError

if TYPE_CHECKING:
    from prony.compat.sark.face.server import SarkOptions


class SarkFace:
    """SARK's API, for Dumont workers and SARK's clients."""

    def add_options(self, parser: ArgumentParser) -> None:
        sark = parser.add_argument_group("SARK's API, for Dumont workers and SARK's clients")
        sark.add_argument(
            "--sark", action="store_true", help="serve SARK's API too, without tokens, only on this machine"
        )
        sark.add_argument("--sark-bind", metavar="ADDRESS", default="127.0.0.1", help="address of that API (127.0.0.1)")
        sark.add_argument(
            "--sark-port", metavar="PORT", type=int, default=5000, help="port of that API (5000); 0: any free port"
        )
        sark.add_argument(
            "--redis", metavar="URL", default="",
            help="Redis with the workers' lists (default: the server answers workers itself)",
        )  # fmt: skip
        sark.add_argument(
            "--sark-redis-port",
            metavar="PORT",
            type=int,
            default=6379,
            help="without --redis: port on which workers find their lists (6379); 0: any free port",
        )
        sark.add_argument(
            "--sark-open-to-anyone", action="store_true",
            help="allow connections from other machines: anyone may delete, run and report anything",
        )  # fmt: skip
        sark.add_argument(
            "--sark-claim-timeout", metavar="TIME", default="15s",
            help="a job that no worker has started after this time goes back to its list (15s)",
        )  # fmt: skip
        sark.add_argument(
            "--sark-job-timeout", metavar="TIME", default="1h", help="time limit for a job on a worker (1h)"
        )

    def read_options(self, options: Namespace) -> SarkOptions | None:
        given = [name for name in ("redis", "sark_open_to_anyone") if getattr(options, name)]
        if not options.sark:
            if given:
                raise InputError(f"--{given[0].replace('_', '-')} needs --sark", hint="add --sark, or leave it out")
            return None
        for port in (options.sark_port, options.sark_redis_port):
            if not 0 <= port <= 65535:
                raise InputError(f"{port} is not a port", hint="a port is a number from 0 to 65535")
        from prony.compat.sark.face.server import SarkOptions
        from prony.compat.sark.face.settings import FaceSettings
        from prony.model.quantity import read_seconds

        claim_s = read_seconds(options.sark_claim_timeout, "--sark-claim-timeout", "15s")
        settings = FaceSettings(
            claim_s=claim_s,
            report_s=min(claim_s, FaceSettings.report_s),
            job_s=read_seconds(options.sark_job_timeout, "--sark-job-timeout", "1h"),
        )
        return SarkOptions(
            host=options.sark_bind,
            port=options.sark_port,
            redis=options.redis,
            lists_port=options.sark_redis_port,
            is_for_anyone=options.sark_open_to_anyone,
            settings=settings,
        )
