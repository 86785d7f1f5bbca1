"""What a server's answers cost as it fills: a thousand, ten thousand and a hundred thousand jobs stored.

Three real servers stand beside each other, one for each size, four of five jobs ended and one waiting; each question is
asked of each in turn over HTTP, so that whatever else the machine does falls on all sizes alike.

Bound: pages of lists, and a lease with its result, take at most three times as long at the largest size as at the
smallest. The queue, the agents, the figures and the health are printed too; the queue grows with the lots that wait.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.agents_simulated import Agent, Results, Wire, gathered, offer_of_this_machine
from benchmarks.bench import scratch
from benchmarks.fleet_filled import COMMON, JOBS_EACH, RARE, fill
from benchmarks.fleet_ground import databases, fresh, prony_server, recipe, run_loop, say_machine

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 40
BOUND = 3.0
Curve = dict[str, list[list[float]]]


@dataclass(frozen=True)
class Ground:
    """Two experiments, and where they are stored."""

    home: Path
    database: str
    ended_id: str
    waiting_id: str


@dataclass
class Filled:
    """One server and somebody who asks it."""

    wire: Wire
    agent: Agent
    paths: dict[str, str]

    async def ask(self, path: str) -> None:
        await self.wire.good("GET", path)

    async def lease_and_finish(self) -> None:
        lease = await self.agent.lease(0)
        assert lease is not None
        await self.agent.finish(lease)


async def two_experiments(url: str, results: Results, offer: dict[str, Any]) -> tuple[str, str]:
    """Have one experiment end and another wait; return their ids."""
    client = await Wire.open(url)
    agents = await gathered([Agent.enrolled(url, f"agent-{number}", offer, results) for number in range(4)])
    ended = asyncio.Semaphore(0)
    works = [asyncio.create_task(agent.work(lambda _: ended.release())) for agent in agents]
    ended_id = await submitted(client, "ended")
    for _ in range(JOBS_EACH):
        await ended.acquire()
    for agent, work in zip(agents, works, strict=True):
        work.cancel()
        agent.wire.close()
        await client.good("DELETE", f"agents/{agent.id}")
    await asyncio.gather(*works, return_exceptions=True)
    return ended_id, await submitted(client, "waiting")


async def submitted(client: Wire, name: str) -> str:
    labels = {COMMON: f"{COMMON}-0", RARE: f"{RARE}-0"}
    view = await client.good("POST", "experiments", recipe(name, JOBS_EACH, labels=labels))
    return str(view["experiment"]["id"])


def prepared(folder: Path, url: str, results: Results, offer: dict[str, Any]) -> Ground:
    home, database = folder / "base", fresh(url)
    with prony_server(home, database) as server:
        ended_id, waiting_id = run_loop(lambda: two_experiments(server.url, results, offer))
    return Ground(home, database, ended_id, waiting_id)


@contextmanager
def filled_server(base: Ground, size: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Give a server's URL and the questions to ask it, by name."""
    home, like = base.home.with_name(f"home-{size}"), base.database.rpartition("/")[2]
    shutil.copytree(base.home, home)
    database = fresh(base.database, like) if base.database else ""
    begin = time.perf_counter()
    middle = fill(home, database, base.ended_id, base.waiting_id, jobs=size)
    filled_s, begin = time.perf_counter() - begin, time.perf_counter()
    with prony_server(home, database) as server:
        print(f"  {size:7} jobs stored in {filled_s:.1f} s; the server starts in {time.perf_counter() - begin:.1f} s")
        yield server.url, questions(middle, size)


def questions(middle: str, size: int) -> dict[str, str]:
    return {
        "jobs, first page": "jobs",
        "jobs, page in the middle": f"jobs?cursor={size // 2}",
        "jobs that are complete": "jobs?state=complete",
        "jobs that wait": "jobs?state=waiting",
        "jobs of one experiment": f"jobs?experiment={middle}",
        "jobs of a common label": f"jobs?label={COMMON}%3D{COMMON}-3",
        "jobs of a rare label": f"jobs?label={RARE}%3D{RARE}-3",
        "experiments": "experiments?limit=10",
        "one experiment": f"experiments/{middle}",
        "(agents)": "agents",
        "(queue)": "queue",
        "(stats)": "stats",
        "(health)": "health",
    }


async def measured(asked: list[tuple[str, dict[str, str]]], results: Results, offer: dict[str, Any]) -> Curve:
    """Return for each question its median seconds at each size."""
    servers = [
        Filled(await Wire.open(url), await Agent.enrolled(url, "agent", offer, results), paths) for url, paths in asked
    ]
    for server in servers:
        # What is leased is the newest of all that waits: whoever looks for it from the other end looks long.
        urgent = recipe("urgent", ROUNDS + 2) | {"priority": 50}
        await server.wire.good("POST", "experiments", urgent)
    names = [*servers[0].paths, "lease and result"]
    taken: Curve = {name: [[] for _ in servers] for name in names}
    for turn in range(ROUNDS + 2):
        for name in names:
            for place, server in enumerate(servers):
                path = server.paths.get(name)
                seconds = await _timed(server.lease_and_finish() if path is None else server.ask(path))
                if turn > 1:  # what a server loads when it first needs it is not what this is about
                    taken[name][place].append(seconds)
    return taken


async def _timed(work: Awaitable[None]) -> float:
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin


def show(curve: Curve) -> bool:
    """Print the curve; return whether the bound held."""
    print(f"\n  {'median ms':28}" + "".join(f"{size:>9}" for size in SIZES) + f"{'ratio':>8}")
    good = True
    for name, sizes in curve.items():
        medians = [median(values) for values in sizes]
        ratio = medians[-1] / medians[0]
        good &= ratio <= BOUND or name.startswith("(")
        print(f"  {name:28}" + "".join(f"{value * 1e3:9.2f}" for value in medians) + f"{ratio:8.2f}")
    print(flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="the database whose name holds this")
    only = parser.parse_args().only
    say_machine()
    good = True
    with scratch() as folder, databases() as urls:
        results, offer = Results.made(folder), offer_of_this_machine(folder)
        for name, url in urls.items():
            if only in name:
                print(name, flush=True)
                base = prepared(folder / name, url, results, offer)
                with ExitStack() as stack:
                    asked = [stack.enter_context(filled_server(base, size)) for size in SIZES]
                    curve = run_loop(lambda asked=asked: measured(asked, results, offer))  # type: ignore[misc]
                good &= show(curve)
    print(f"bound: at most {BOUND:g} times from {SIZES[0]} to {SIZES[-1]} jobs, but for what stands in brackets")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
