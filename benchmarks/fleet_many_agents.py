"""Two thousand agents that wait at one server: what they cost, and how soon a submission reaches one of them.

All agents long-poll over connections of their own. Then experiments of one job are submitted, one by one and twenty at
once; an agent keeps its job until all that were submitted together are leased, because no real one ends sooner.

Bound: from submission to lease, median under 50 ms and p99 under 500 ms. Of twenty at once the last has to wait for the
others, whatever each takes, so that only their p99 is held against the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.agents_simulated import Agent, Lease, Results, Wire, gathered, offer_of_this_machine
from benchmarks.bench import scratch
from benchmarks.fleet_ground import (
    SPREAD_HEAD,
    Serving,
    databases,
    fresh,
    prony_server,
    quantile,
    recipe,
    run_loop,
    say_machine,
    spread_text,
)

AGENTS = 2000
ONE_BY_ONE, BURSTS, BURST = 300, 15, 20
IDLE_S = 20.0
WAIT_S = 30.0
MEDIAN_S, P99_S = 0.050, 0.500
_LONGEST_S = 60.0
_SINGLE = "one by one"


@dataclass
class Leased:
    """When each experiment's job reached an agent, and who waits to know."""

    at: dict[str, float] = field(default_factory=dict)
    known: asyncio.Condition = field(default_factory=asyncio.Condition)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    ended: int = 0

    async def note(self, lease: Lease) -> None:
        self.at[lease["job"]["experiment_id"]] = time.perf_counter()
        async with self.known:
            self.known.notify_all()

    async def wait(self, experiment_id: str) -> float:
        async with self.known:
            await self.known.wait_for(lambda: experiment_id in self.at)
        return self.at[experiment_id]


async def wait_for_jobs(agent: Agent, leased: Leased, first_wait_s: float) -> None:
    """Long-poll for ever; keep each job until it may end."""
    wait_s = first_wait_s
    while True:
        lease = await agent.lease(wait_s)
        wait_s = WAIT_S
        if lease is not None:
            await leased.note(lease)
            await leased.may_end.wait()
            await agent.finish(lease)
            leased.ended += 1


async def submit(client: Wire, leased: Leased, name: str) -> tuple[str, float]:
    """Return the experiment and the seconds from sending it to an agent's having its job."""
    begin = time.perf_counter()
    view = await client.good("POST", "experiments", recipe(name))
    experiment_id = view["experiment"]["id"]
    return experiment_id, await leased.wait(experiment_id) - begin


async def together(clients: list[Wire], leased: Leased) -> list[tuple[str, float]]:
    """Submit one from each client at once; return when all of them have ended."""
    leased.may_end.clear()
    wanted = leased.ended + len(clients)
    async with asyncio.timeout(_LONGEST_S):
        taken = await asyncio.gather(*(submit(client, leased, "burst") for client in clients))
        leased.may_end.set()
        while leased.ended < wanted:
            await asyncio.sleep(0.002)
    return taken


async def by_server(client: Wire, experiment_ids: list[str]) -> list[float]:
    """Return the seconds from creation to lease by the server's own clock."""
    found = []
    for one in experiment_ids:
        (job,) = (await client.good("GET", f"jobs?experiment={one}"))["items"]
        created, leased = (datetime.fromisoformat(job[name]) for name in ("created_at", "leased_at"))
        found.append((leased - created).total_seconds())
    return found


async def idle(server: Serving, seconds: float) -> float:
    """Return the share of one core that the server takes while nothing happens."""
    before, begin = server.cpu_s(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (server.cpu_s() - before) / (time.perf_counter() - begin)


async def measure(server: Serving, count: int, results: Results, offer: dict[str, Any]) -> bool:
    """Print all figures of one server; return whether the bound held."""
    leased = Leased()
    await warm_up(server, results, offer)
    alone, lean_bytes = await idle(server, 5), server.rss_bytes()
    begin = time.perf_counter()
    agents = await gathered([Agent.enrolled(server.url, f"agent-{n:04}", offer, results) for n in range(count)])
    enrolled_s = time.perf_counter() - begin
    spread = random.Random(7)
    waits = [asyncio.create_task(wait_for_jobs(one, leased, spread.uniform(5, WAIT_S))) for one in agents]
    await asyncio.sleep(WAIT_S / 3)
    share = await idle(server, IDLE_S)
    each_kib = (server.rss_bytes() - lean_bytes) / count / 1024
    print(f"  {count} agents enrolled in {enrolled_s:.1f} s, {count / enrolled_s:.0f} a second")
    print(f"  idle server: {alone:.1%} of a core without agents, {share:.1%} with them; {each_kib:.0f} KiB an agent")
    # Opened now, because the server closes what rests for longer than a minute.
    clients = [await Wire.open(server.url) for _ in range(BURST)]
    many = [one for _ in range(BURSTS) for one in await together(clients, leased)]
    single = [(await together(clients[:1], leased))[0] for _ in range(ONE_BY_ONE)]
    for wait in waits:
        wait.cancel()
    return await show(clients[0], {_SINGLE: single, f"{BURST} at once": many})


async def show(client: Wire, rows: dict[str, list[tuple[str, float]]]) -> bool:
    print(f"\n  {'submission to lease, ms':32}{'count':>6}{SPREAD_HEAD}")
    good = quantile([second for _, second in rows[_SINGLE]], 0.5) < MEDIAN_S
    for name, taken in rows.items():
        seconds = [second for _, second in taken]
        good &= quantile(seconds, 0.99) < P99_S
        print(f"  {name + ', to the agent':32}{len(taken):6}{spread_text(seconds)}")
        inside = await by_server(client, [one for one, _ in taken])
        print(f"  {name + ', in the server':32}{len(taken):6}{spread_text(inside)}")
    print(flush=True)
    return good


async def warm_up(server: Serving, results: Results, offer: dict[str, Any]) -> None:
    """Put some jobs through, so that what the server loads when it first needs it is there; leave no agent behind."""
    agent = await Agent.enrolled(server.url, "warm", offer, results)
    for _ in range(3):
        await agent.wire.good("POST", "experiments", recipe("warm"))
        lease = await agent.lease()
        assert lease is not None
        await agent.finish(lease)
    await agent.wire.good("DELETE", f"agents/{agent.id}")
    agent.wire.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--only", default="", help="the database whose name holds this")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    say_machine()
    good = True
    with scratch() as folder, databases() as urls:
        results, offer = Results.made(folder), offer_of_this_machine(folder)
        for name, url in urls.items():
            if options.only in name:
                print(name)
                with prony_server(Path(folder, name), fresh(url)) as server:
                    work = measure(server, options.agents, results, offer)
                    good &= run_loop(lambda work=work: work)  # type: ignore[misc]
    print(f"bound: to the agent, p99 under {P99_S * 1e3:g} ms; one by one, median under {MEDIAN_S * 1e3:g} ms")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
