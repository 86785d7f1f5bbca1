"""What fifty jobs of one Dumont worker cost the server, in processor seconds.

A real `prony server --sark` and the stand-in of a Dumont worker, with that worker's own pace: it looks for a job every
second, beats every ten, and takes a second for each job, as for a small model. The server's processor time is that of
all its processes, from just before the campaign is created until it has ended; what it costs to do nothing for as long
is told beside it. The lists are the server's own, and then those of a Redis.

Bound: 2 processor seconds for 50 jobs.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench import describe, scratch
from benchmarks.fleet_ground import Serving, prony_server, say_machine

from dumont.crew import crew  # isort: skip - of tests/, which fleet_ground adds to the path
from servers.ports import free_port  # isort: skip
from servers.redis import redis_server  # isort: skip

JOBS, WORK_S = 50, 1.0
BOUND_CPU_S = 2.0
MODEL = "http://models.example/tiny.onnx"
OWN, REDIS = "its own lists", "Redis"
_LONGEST_S = 600.0


@dataclass(frozen=True)
class Measured:
    """`idle_cpu_s` is for as long as the campaign took."""

    cpu_s: float
    wall_s: float
    idle_cpu_s: float


@dataclass(frozen=True)
class Stage:
    """A server and the address of its SARK API; a worker is at it and has nothing to do."""

    serving: Serving
    url: str

    def ask(self, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.url}/api/{path}", content, timeout=60) as answer:
            return json.loads(answer.read())


@contextmanager
def prepare(folder: Path, lists: str) -> Iterator[Stage]:
    port, lists_port = free_port(), free_port()
    with ExitStack() as stack:
        redis_url = f"redis://127.0.0.1:{lists_port}/0"
        options = ["--sark", "--sark-port", str(port), "--sark-redis-port", str(lists_port)]
        if lists == REDIS:
            redis_url = stack.enter_context(redis_server())
            options += ["--redis", redis_url]
        serving = stack.enter_context(prony_server(folder / "home", options=options))
        stage = Stage(serving, f"http://127.0.0.1:{port}")
        workers = stack.enter_context(crew(folder, host=stage.url, redis_url=redis_url))
        pace = ["--heartbeat", "10", "--idle", "1", "--work", str(WORK_S), "--capability", "CPU (ONNX)"]
        workers.start(options=pace).wait_said("Starting job loop", within_s=60)
        yield stage


def measure(stage: Stage) -> Measured:
    cpu_s, began = stage.serving.cpu_s(), time.monotonic()
    jobs = [{"compute_unit": "CPU (ONNX)", "num_inference_runs": 10}] * JOBS
    campaign_id = stage.ask("campaigns", {"model_url": MODEL, "jobs": jobs})["campaign_id"]
    # Asked for once when it should have ended, and then seldom: questions cost the server something too.
    time.sleep(JOBS * WORK_S)
    while (view := stage.ask(f"campaigns/{campaign_id}"))["status"] != "completed":
        if time.monotonic() - began > _LONGEST_S:
            sys.exit(f"the campaign has not ended: {view['job_breakdown']}")
        time.sleep(2)
    if view["completed_jobs"] != JOBS:
        sys.exit(f"not all jobs went well: {view['job_breakdown']}")
    wall_s, spent_s = time.monotonic() - began, stage.serving.cpu_s() - cpu_s
    before_s = stage.serving.cpu_s()
    time.sleep(wall_s)
    return Measured(spent_s, wall_s, stage.serving.cpu_s() - before_s)


def main() -> int:
    describe(__doc__).parse_args()
    say_machine()
    print(f"{JOBS} jobs of one Dumont      {'cpu, s':>8}{'a job, ms':>11}{'wall, s':>9}{'idle as long, s':>17}")
    worst = 0.0
    for lists in (OWN, REDIS):
        with scratch() as folder, prepare(folder, lists) as stage:
            found = measure(stage)
        worst = max(worst, found.cpu_s)
        each_ms = found.cpu_s / JOBS * 1e3
        print(f"{lists:<26}{found.cpu_s:9.2f}{each_ms:11.1f}{found.wall_s:9.1f}{found.idle_cpu_s:17.2f}", flush=True)
    print(f"\nbound: {BOUND_CPU_S:g} s of processor time for {JOBS} jobs")
    return 0 if worst <= BOUND_CPU_S else 1


if __name__ == "__main__":
    sys.exit(main())
