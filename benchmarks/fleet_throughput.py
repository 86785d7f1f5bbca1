"""Jobs a second from submission to recorded result, beside RQ and Celery on Redis, each doing nothing.

Prony: a real server process, and agents that lease a job, run nothing and hand in a real result folder, which the
server checks, summarises and keeps. The peers: a function that returns its argument. Every system is warm, and the time
runs from the first submission to the last result.

Bound: with as many slots, at least as many jobs a second as RQ's default worker.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.agents_simulated import Agent, Results, Wire, gathered, offer_of_this_machine
from benchmarks.bench import scratch
from benchmarks.fleet_ground import POSTGRES, SQLITE, databases, fresh, prony_server, recipe, run_loop, say_machine
from benchmarks.fleet_peers import celery_s, rq_s
from servers.redis import redis_server

SLOTS = (2, 8)
JOBS = 1000
# On a Redis that waits for its disk the peers would take minutes for as many.
FEW = 200
_LONGEST_S = 150.0
_FORKS, _STAYS = "rq.worker.Worker", "rq.worker.SimpleWorker"
_ON_DISK = ("--appendonly", "yes", "--appendfsync", "always")
RQ = "RQ"


@dataclass(frozen=True)
class System:
    """`durable`: what survives a power cut."""

    name: str
    durable: str
    jobs: int
    seconds: Callable[[int, int], float]


async def prony_s(url: str, results: Results, offer: dict[str, object], *, slots: int, jobs: int) -> float:
    """Return the seconds from the submission to the last recorded result."""
    agents = await gathered([Agent.enrolled(url, f"agent-{number}", offer, results) for number in range(slots)])
    client = await Wire.open(url)
    done: asyncio.Queue[float] = asyncio.Queue()
    works = [asyncio.create_task(agent.work(lambda _: done.put_nowait(time.perf_counter()))) for agent in agents]

    async def through(count: int) -> float:
        begin = time.perf_counter()
        await client.good("POST", "experiments", recipe("noop", count))
        for _ in range(count):
            last = await done.get()
        return last - begin

    try:
        async with asyncio.timeout(_LONGEST_S):
            await through(4 * slots)
            return await through(jobs)
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


def systems(folder: Path, urls: dict[str, str], in_memory: str, on_disk: str, jobs: int) -> list[System]:
    few = min(FEW, jobs)
    results, offer = Results.made(folder), offer_of_this_machine(folder)

    def prony(database: str) -> Callable[[int, int], float]:
        def seconds(slots: int, count: int) -> float:
            with prony_server(folder / f"home-{database}-{slots}", fresh(urls[database])) as server:
                return run_loop(lambda: prony_s(server.url, results, offer, slots=slots, jobs=count))

        return seconds

    def rq(url: str, worker: str) -> Callable[[int, int], float]:
        return lambda slots, count: rq_s(url, slots=slots, jobs=count, worker=worker)

    return [
        System("prony, SQLite", "every step", jobs, prony(SQLITE)),
        System("prony, PostgreSQL", "every step", jobs, prony(POSTGRES)),
        System(RQ, "nothing", jobs, rq(in_memory, _FORKS)),
        System("RQ, appendfsync", "every step", few, rq(on_disk, _FORKS)),
        System("RQ SimpleWorker", "nothing", jobs, rq(in_memory, _STAYS)),
        System("RQ SimpleWorker, appendfsync", "every step", few, rq(on_disk, _STAYS)),
        System("Celery", "nothing", jobs, lambda slots, count: celery_s(in_memory, slots=slots, jobs=count)),
        # It tells the broker that a job is done before it runs it: one that is at hand in a crash is lost.
        System("Celery, appendfsync", "but jobs at hand", few, lambda s, count: celery_s(on_disk, slots=s, jobs=count)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="systems whose name holds this, and RQ")
    parser.add_argument("--jobs", type=int, default=JOBS, help="of each system; fewer where a Redis waits for its disk")
    options = parser.parse_args()
    missing = [name for name in ("rq", "celery") if find_spec(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; to bring it: pip install '.[bench]', which `make bench` does")
    say_machine()
    print(f"{'slots':>5}  {'':30}{'durable':18}{'jobs':>5}{'jobs/s':>8}{'of RQ':>8}")
    missed = False
    with scratch() as folder, databases() as urls, redis_server() as memory, redis_server(*_ON_DISK) as disk:
        chosen = [
            one
            for one in systems(folder, urls, memory, disk, options.jobs)
            if options.only.lower() in one.name.lower() or one.name == RQ
        ]
        if options.only and len(chosen) == 1:
            sys.exit(f"no system's name holds {options.only!r}")
        for slots in SLOTS:
            rates = {one.name: one.jobs / one.seconds(slots, one.jobs) for one in chosen}
            for one in chosen:
                ratio = rates[one.name] / rates[RQ]
                missed |= one.name.startswith("prony") and ratio < 1
                print(f"{slots:5}  {one.name:30}{one.durable:18}{one.jobs:5}{rates[one.name]:8.0f}{ratio:8.2f}")
    print("\nbound: prony at least level with RQ, whose default worker forks for each job")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
