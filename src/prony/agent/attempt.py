"""Run the job of one lease: start its runner, report its progress, and stop it on request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import StrEnum

from prony.agent.finalize_attempt import Ending
from prony.agent.gang import Messenger
from prony.agent.logs import Log
from prony.agent.process import GRACE_S, RunnerProcess
from prony.agent.reporter import Reporter
from prony.agent.runner_log import RunnerLog
from prony.agent.spool import Work
from prony.agent.stopping import cancel_tasks
from prony.model.event import Event
from prony.model.lease import Lease
from prony.ports.agent_link import ServerLink
from prony.store.home import Home

_FLUSH_S = 2.0
_LINGER_S = 1.0


class Why(StrEnum):
    """Who wanted a job to stop: the server, because it was cancelled or is not ours any more; or this agent's end."""

    CANCELLED = "cancelled"
    LOST = "lost"
    DRAINED = "drained"


class Attempt:
    """A lease while its job runs."""

    def __init__(self, lease: Lease, work: Work, link: ServerLink, log: Log) -> None:
        self.lease = lease
        self.work = work
        self.why: Why | None = None
        self._log = log
        self._asked = asyncio.Event()
        self._has_ended = False
        self._grace_s = GRACE_S
        self._link = link
        self._reporter = Reporter(link, lease.id, RunnerLog(work), on_cancel=self._cancel, log=log)

    def ask_to_stop(self, why: Why, *, grace_s: float = GRACE_S) -> None:
        """Have the job stopped and what was measured kept; the first reason stands."""
        if self.why is None:
            self.why = why
            self._grace_s = grace_s
            self._log.info("stopping the job", reason=why.value)
            # What has ended is stopped no more, and its folder may be on its way out: a line would leave it there.
            if not self._has_ended:
                self._reporter.say(f"stopped: {why.value}")
        self._asked.set()

    def _cancel(self, is_lost: bool) -> None:
        self.ask_to_stop(Why.LOST if is_lost else Why.CANCELLED)

    async def perform(self, home: Home, calibration_id: str | None, policy: dict[str, str]) -> Ending:
        """Run the job to its end, or to where it is stopped."""
        is_part = self.lease.job.part is not None
        runner = await RunnerProcess.start(self.work, home, calibration_id, policy, is_part=is_part)
        messenger = Messenger(self._link, self.lease.id, tell=runner.tell, log=self._log)
        self._log.debug("runner started", pid=runner.pid)
        reporting = asyncio.create_task(self._reporter.run())
        hearing = asyncio.create_task(self._hear(runner, messenger))
        exiting = asyncio.create_task(runner.wait())
        asking = asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait({exiting, asking}, return_when=asyncio.FIRST_COMPLETED)
            exit_code = exiting.result() if exiting.done() else await runner.stop(self._grace_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(hearing, _LINGER_S)
        finally:
            runner.close()
            await cancel_tasks(reporting, hearing, exiting, asking)
            await messenger.close()
        await self._reporter.flush(_FLUSH_S)
        self._has_ended = True
        return Ending(exit_code, cancelled=self.why is not None)

    async def _hear(self, runner: RunnerProcess, messenger: Messenger) -> None:
        async for said in runner.events():
            if isinstance(said, Event) and said.kind == "meet":
                messenger.send(said)
            elif isinstance(said, Event):
                self._reporter.event(said)
            else:
                self._reporter.say(said)
