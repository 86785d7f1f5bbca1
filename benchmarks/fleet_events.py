"""How soon what an agent tells of its job reaches somebody who watches.

One agent posts an event every 20 ms, fifty others hold leases and send their heartbeats, and a client reads the
experiment's server-sent events. The time runs from the agent's sending to the client's having the whole event.

Bound: 99 of 100 within 200 ms.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.agents_simulated import Agent, Lease, Results, Wire, gathered, offer_of_this_machine
from benchmarks.bench import describe, scratch
from benchmarks.fleet_ground import (
    SPREAD_HEAD,
    databases,
    fresh,
    prony_server,
    quantile,
    recipe,
    run_loop,
    say_machine,
    spread_text,
)

EVENTS, PAUSE_S = 500, 0.02
BEATING, BEAT_S = 50, 2.0
P99_S = 0.200
_LONGEST_S = 60.0


@dataclass
class Watcher:
    """Reads a stream of events and notes when each progress came."""

    rest: bytes = b""
    at: dict[int, float] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    all_here: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, piece: bytes) -> None:
        for kind, data in self._events(piece):
            if kind == "snapshot":
                self.begun.set()
            elif kind == "progress":
                self.at[json.loads(data)["done"]] = time.perf_counter()
        if len(self.at) == EVENTS:
            self.all_here.set()

    def _events(self, piece: bytes) -> Iterator[tuple[str, str]]:
        *whole, self.rest = (self.rest + piece).split(b"\n\n")
        for one in whole:
            said = dict(line.split(": ", 1) for line in one.decode().splitlines() if not line.startswith(":"))
            yield said.get("event", ""), said.get("data", "")


async def beat(agent: Agent, lease: Lease, first_s: float) -> None:
    await asyncio.sleep(first_s)
    while True:
        await agent.wire.good("POST", f"agents/{agent.id}/heartbeat", {"incarnation": "one", "leases": [lease["id"]]})
        await asyncio.sleep(BEAT_S)


async def measure(url: str, results: Results, offer: dict[str, Any]) -> list[float]:
    """Return the seconds that each event took."""
    count = BEATING + 1
    agents = await gathered([Agent.enrolled(url, f"agent-{n:02}", offer, results) for n in range(count)])
    watcher = Watcher()
    client, watching = await Wire.open(url), await Wire.open(url, watcher.take)
    experiment_id = (await client.good("POST", "experiments", recipe("watched", count)))["experiment"]["id"]
    leases = [lease for lease in await asyncio.gather(*(agent.lease() for agent in agents)) if lease is not None]
    pairs = list(zip(agents, leases, strict=True))
    beats = [asyncio.create_task(beat(*pair, n * BEAT_S / count)) for n, pair in enumerate(pairs[1:])]
    stream = asyncio.create_task(watching.ask("GET", f"experiments/{experiment_id}/events"))
    async with asyncio.timeout(_LONGEST_S):
        await watcher.begun.wait()
        sent = await post_events(*pairs[0])
        await watcher.all_here.wait()
    for task in (*beats, stream):
        task.cancel()
    return [watcher.at[number] - begin for number, begin in sent.items()]


async def post_events(agent: Agent, lease: Lease) -> dict[int, float]:
    sent = {}
    for number in range(1, EVENTS + 1):
        event = {"kind": "repetition", "job_id": lease["job"]["id"], "done": number, "total": EVENTS, "state": "ok"}
        sent[number] = time.perf_counter()
        await agent.wire.good("POST", f"leases/{lease['id']}/progress", {"events": [event]})
        await asyncio.sleep(PAUSE_S)
    return sent


def main() -> int:
    describe(__doc__).parse_args()
    say_machine()
    print(f"{'event to client, ms':20}{'count':>6}{SPREAD_HEAD}")
    missed = False
    with scratch() as folder, databases() as urls:
        results, offer = Results.made(folder), offer_of_this_machine(folder)
        for name, database in urls.items():
            with prony_server(Path(folder, name), fresh(database)) as server:
                work = measure(server.url, results, offer)
                taken = run_loop(lambda work=work: work)  # type: ignore[misc]
            missed |= quantile(taken, 0.99) >= P99_S
            print(f"{name:20}{len(taken):6}{spread_text(taken)}", flush=True)
    print(f"\nbound: p99 under {P99_S * 1e3:g} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
