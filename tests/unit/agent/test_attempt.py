"""One attempt with a real runner: what it writes, and when it does so no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from prony.agent.attempt import RunningAttempt, Why
from prony.agent.finalize_attempt import Ending
from prony.agent.logs import AgentLog
from prony.agent.server_client import ServerClient
from prony.agent.spool import Spool
from prony.model.lease import Lease
from prony.store.home import Home

from .small_server import SmallServer


def test_who_stops_a_job_that_has_ended_writes_nothing_into_its_folder(
    faulty: Callable[[str], Path],
    a_lease: Callable[..., Lease],
    home: Home,
    spool: Spool,
    server: SmallServer,
    log: AgentLog,
) -> None:
    lease = a_lease(model=str(faulty("check:fine")), engine="faulty")
    work = spool.begin(lease)

    async def run() -> tuple[Ending, RunningAttempt]:
        async with ServerClient(server.url, answer_s=60.0) as link, asyncio.timeout(240):
            attempt = RunningAttempt(lease, work, link, log)
            ending = await attempt.perform(home, None, {})
            before = work.log.read_bytes()
            attempt.ask_to_stop(Why.CANCELLED)
            assert work.log.read_bytes() == before != b""
            return ending, attempt

    ending, attempt = asyncio.run(run())
    assert (ending.exit_code, ending.cancelled, attempt.why) == (0, False, Why.CANCELLED)
