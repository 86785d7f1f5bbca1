"""Jobs that run and report to a server, and the share of a core that a page spends while it follows them.

The server, its protocol and the browser are real. The agents run nothing: each holds a lease, reports its load every
second, as a load generator does, and sends heartbeats.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks.agents_simulated import Agent, Lease, Results, Wire, gathered, offer_of_this_machine
from benchmarks.fleet_ground import recipe

JOBS = 50
REPORT_S = 1.0
# Every so many reports a heartbeat, which renews the lease.
BEAT_EVERY = 5
SETTLE_MS, FOLLOW_MS = 5_000, 20_000
_PATIENCE_S = 60.0


@contextmanager
def reporting_jobs(url: str, folder: Path, jobs: int = JOBS) -> Iterator[str]:
    """Have so many jobs of one experiment run and report while the block runs; give the experiment's id."""
    results, offer = Results.made(folder), offer_of_this_machine(folder)
    begun: Future[str] = Future()
    loop = asyncio.new_event_loop()
    work = loop.create_task(_report(url, results, offer, jobs, begun))
    thread = threading.Thread(target=loop.run_until_complete, args=(asyncio.wait([work]),), name="reporting agents")
    thread.start()
    try:
        yield begun.result(_PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(work.cancel)
        thread.join()
        loop.close()
        if not work.cancelled():
            work.result()  # they report until they are told to stop: whatever ended them is an error


async def _report(url: str, results: Results, offer: dict[str, Any], jobs: int, begun: Future[str]) -> None:
    agents = await gathered([Agent.enrolled(url, f"agent-{n:02}", offer, results) for n in range(jobs)])
    client = await Wire.open(url)
    experiment_id = (await client.good("POST", "experiments", recipe("live", jobs)))["experiment"]["id"]
    client.close()
    leases = [lease for lease in await asyncio.gather(*(agent.lease() for agent in agents)) if lease is not None]
    async with asyncio.TaskGroup() as group:
        for place, (agent, lease) in enumerate(zip(agents, leases, strict=True)):
            group.create_task(_report_one(agent, lease, place * REPORT_S / jobs))
        begun.set_result(experiment_id)


async def _report_one(agent: Agent, lease: Lease, first_s: float) -> None:
    """Report as jobs do that began at different moments: each in its own part of a second."""
    await asyncio.sleep(first_s)
    second = 0
    while True:
        second += 1
        live = {"elapsed_s": second * REPORT_S, "left_s": 600.0, "sent": 900 * second, "done": 899 * second}
        live |= {"failed": 0, "in_flight": 4, "rate_per_s": 900.0 + second % 7, "p50_ms": 1.2, "p99_ms": 4.5}
        event = {"kind": "load", "job_id": lease["job"]["id"], "live": live}
        await agent.wire.good("POST", f"leases/{lease['id']}/progress", {"events": [event]})
        if second % BEAT_EVERY == 0:
            said = {"incarnation": "one", "leases": [lease["id"]]}
            await agent.wire.good("POST", f"agents/{agent.id}/heartbeat", said)
        await asyncio.sleep(REPORT_S)


def renderer_share(browser: Browser, address: str) -> float:
    """Return the per cent of a core that the renderer of one open page used while it followed what happens."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(address)
    page.locator("main h1").wait_for()
    page.wait_for_timeout(SETTLE_MS)
    before = _renderers_cpu_s(browser)
    page.wait_for_timeout(FOLLOW_MS)
    used = _renderers_cpu_s(browser) - before
    page.context.close()
    return 100 * used / (FOLLOW_MS / 1000)


def _renderers_cpu_s(browser: Browser) -> float:
    session = browser.new_browser_cdp_session()
    told = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return sum(float(one["cpuTime"]) for one in told if one["type"] == "renderer")
