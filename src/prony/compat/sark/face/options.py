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
        sark.add_argument("--sark", action="store_true", help="serve it too, without tokens, on this machine alone")
        sark.add_argument("--sark-bind", metavar="ADDRESS", default="127.0.0.1", help="the address (127.0.0.1)")
        sark.add_argument(
            "--sark-port", metavar="PORT", type=int, default=5000, help="the port (5000); 0: any free one"
        )
        sark.add_argument("--redis", metavar="URL", default="", help="a Redis for the workers' lists; else its own")
        sark.add_argument(
            "--sark-redis-port",
            metavar="PORT",
            type=int,
            default=6379,
            help="without --redis: the port of its own lists (6379)",
        )
        sark.add_argument(
            "--sark-open-to-anyone", action="store_true",
            help="let others than this machine in: whoever reaches the port may delete, run and report whatever they "
            "like",
        )  # fmt: skip
        sark.add_argument(
            "--sark-claim-timeout", metavar="TIME", default="15s",
            help="a job that left its list, and that no worker is busy with by then, is put there again (15s)",
        )  # fmt: skip
        sark.add_argument(
            "--sark-job-timeout", metavar="TIME", default="1h", help="how long a worker may take for a job (1h)"
        )

    def read_options(self, options: Namespace) -> SarkOptions | None:
        given = [name for name in ("redis", "sark_open_to_anyone") if getattr(options, name)]
        if not options.sark:
            if given:
                raise InputError(
                    f"--{given[0].replace('_', '-')} goes with --sark", hint="add --sark, or leave it away"
                )
            return None
        for port in (options.sark_port, options.sark_redis_port):
            if not 0 <= port <= 65535:
                raise InputError(f"{port} is no port", hint="a port is a number from 0 to 65535")
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
