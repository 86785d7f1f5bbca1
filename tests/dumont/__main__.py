"""`python -m dumont start --host URL`: the worker as a command, with its exit codes.

0: Ctrl-C, or no Redis (which it does not tell from a good end); 1: not registered; 2: no --host; killed by SIGTERM.
"""

from __future__ import annotations

import importlib.util
import logging
import platform
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from dumont.benchmark import measured, recorded
from dumont.faults import Fault
from dumont.wire import Orchestrator, Queues
from dumont.worker import Pace, Worker


def main() -> int:
    parser = ArgumentParser(prog="dumont")
    start = parser.add_subparsers(dest="command", required=True).add_parser("start")
    start.add_argument("--host", required=True)
    start.add_argument("--redis-host", default="localhost")
    start.add_argument("--redis-port", type=int, default=6379)
    # What follows is the stand-in's own.
    start.add_argument("--device", default=platform.node())
    start.add_argument("--capability", action="append", default=[])
    start.add_argument("--mode", choices=("real", "recorded"), default="real")
    start.add_argument("--heartbeat", type=float, default=10.0)
    start.add_argument("--idle", type=float, default=1.0)
    start.add_argument("--work", type=float, default=0.0, help="seconds that each job takes at least")
    start.add_argument("--fault", default="")
    start.add_argument("--gate", type=Path, default=Path("gate"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    worker = _worker(options)
    if not worker.register():
        sys.stderr.write("Failed to register with orchestrator\n")
        return 1
    try:
        worker.run()
    except KeyboardInterrupt:
        logging.getLogger("worker").info("Interrupted by user")
    return 0


def _worker(options: Namespace) -> Worker:
    host = options.redis_host
    if host == "localhost" and not options.host.startswith(("http://localhost", "http://127.0.0.1")):
        host = urlsplit(options.host).hostname or host
    return Worker(
        Orchestrator(options.host),
        Queues(host, options.redis_port),
        _device(options.device),
        tuple(options.capability) or _capabilities(),
        measured if options.mode == "real" else recorded,
        Fault.read(options.fault, options.gate),
        Pace(options.heartbeat, options.idle, options.work),
    )


def _device(name: str) -> dict[str, str]:
    """Describe the machine; two workers on it, or two machines that are alike, say just the same."""
    return {
        "DeviceName": name,
        "DeviceOs": platform.system(),
        "DeviceOsVersion": platform.version(),
        "DeviceYear": "",
        "Soc": platform.processor(),
        "Ram": str(psutil.virtual_memory().total // 2**30),
        "DiscreteGpu": "",
        "VRam": "",
    }


def _capabilities() -> tuple[str, ...]:
    return ("CPU (ONNX)",) if importlib.util.find_spec("onnxruntime") else ("CPU",)


if __name__ == "__main__":
    sys.exit(main())
