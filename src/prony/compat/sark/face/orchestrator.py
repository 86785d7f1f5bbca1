"""The use cases of SARK's REST API over the fleet: campaigns, jobs and the whole; workers and files have their own."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from prony.app.fleet.submission import store_plan
from prony.app.fleet.wait_reasons import explain_wait
from prony.compat.sark.face.bridge import Bridge
from prony.compat.sark.face.campaigns import campaign_of, plan_campaign
from prony.compat.sark.face.settings import WHO
from prony.compat.sark.face.shown import Around, CampaignFiles, shown_campaign, shown_job, shown_result
from prony.compat.sark.face.worker_registry import WorkerRegistry
from prony.compat.sark.face.workers import every_queue
from prony.compat.sark.nouns import RESULTS_QUEUE, capability_queue, held_queue, worker_queue
from prony.errors import TransportError
from prony.kinds.model.schema import ModelWorkload
from prony.model.queue import JobState
from prony.store import campaigns
from prony.store.codecs import experiment_of
from prony.store.writer import Transaction

if TYPE_CHECKING:
    from prony.store.database import Connection, Row


class Orchestrator:
    """Every method returns what is sent as JSON, or raises a PronyError whose message SARK's clients know."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.fleet = bridge.fleet
        self.settings = bridge.settings
        self.workers = WorkerRegistry(bridge)
        self.files = CampaignFiles(bridge.fleet)
        self._last_number = 0

    # Campaigns

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store a campaign and tell workers of its jobs; without Redis they are told when it is back."""
        aside = self.fleet.context.readers.in_thread  # a campaign may have thousands of jobs
        asked = await aside(campaign_of, body, job_s=self.settings.job_s)
        while True:
            identity = self._next_id()
            made = await aside(plan_campaign, asked, identity, now=self.fleet.context.clock.now())
            await aside(made.prepare)

            def keep(transaction: Transaction, made: Any = made) -> bool:
                if campaigns.is_taken(transaction.connection, made.experiment.id):
                    return False
                store_plan(transaction, made)
                return True

            with self.fleet.state.expect_lots(made.lots.values()):
                if await self.fleet.context.write(keep):
                    break
        self.fleet.context.hook("submitted", experiment=identity, jobs=len(made.jobs), who=WHO.name)
        await self.bridge.push_new(identity)
        listed = [
            {"job_id": job.id, "compute_unit": one.word, "status": "pending"}
            for job, one in zip(made.jobs, asked.jobs, strict=True)
        ]
        return {"campaign_id": identity, "total_jobs": len(made.jobs), "status": "running", "jobs": listed}

    def _next_id(self) -> str:
        """Return an id of the second that it is, or of the next that no campaign has."""
        self._last_number = max(int(time.time()), self._last_number + 1)
        return f"{campaigns.PREFIX}{self._last_number}"

    async def campaigns(self) -> dict[str, Any]:
        def ask(connection: Connection) -> list[dict[str, Any]]:
            jobs: dict[str, list[Row[Any]]] = defaultdict(list)
            for row in campaigns.jobs(connection):
                jobs[row.experiment_id].append(row)
            around = self._around()
            return [_show_campaign(row, jobs[row.id], around) for row in campaigns.every(connection)]

        listed = await self.fleet.context.read(ask)
        return {"count": len(listed), "campaigns": listed}

    async def campaign(self, campaign_id: str) -> dict[str, Any]:
        def ask(connection: Connection) -> dict[str, Any]:
            row = campaigns.require(connection, campaign_id)
            return _show_campaign(row, campaigns.jobs(connection, campaign_id), self._around())

        return await self.fleet.context.read(ask)

    def _around(self) -> Around:
        reason_of = cache(partial(explain_wait, self.fleet.state))  # the same for all jobs of a lot
        return Around(self.workers.names(), reason_of)

    # Jobs

    async def job(self, job_id: str, *, address: str) -> dict[str, Any]:
        """Return a job; a worker that took its id from a list asks for it so, and then says to be busy."""
        row = await self.fleet.context.read(lambda connection: campaigns.job(connection, job_id))
        if row.state == JobState.WAITING:
            self.bridge.claims.note_request(job_id, address, self.fleet.context.now())
        return {"job": shown_job(row, self._around()), "result": shown_result(row)}

    # The whole

    async def queue_status(self) -> dict[str, Any]:
        workers = await self.workers.workers_known()
        words = list(dict.fromkeys(word for one in workers for word in one["capabilities"]))
        named = {one["worker_id"]: one["device_name"] for one in workers}
        queues = [*map(capability_queue, words), *map(worker_queue, named), RESULTS_QUEUE]
        sizes = await self.bridge.queues.sizes(queues)
        return {
            "worker_queues": {
                worker_id: {"device_name": name, "queue_size": sizes[worker_queue(worker_id)]}
                for worker_id, name in named.items()
            },
            "capability_queues": {word: sizes[capability_queue(word)] for word in words},
            "results_queue_size": sizes[RESULTS_QUEUE],
        }

    async def health(self) -> dict[str, Any]:
        now = self.fleet.context.clock.now().replace(tzinfo=None).isoformat()
        return {
            "status": "healthy",
            "timestamp": now,
            "redis": await self.bridge.queues.describe() | {"timestamp": now},
        }

    async def stats(self) -> dict[str, Any]:
        counts = await self.fleet.context.read(campaigns.counts)
        return {
            "health_monitor": {
                "running": True,
                "thread_alive": True,
                "heartbeat_timeout": self.settings.silence_s,
                "check_interval": self.fleet.context.settings.sweep_s,
            },
            "timeout_handler": {
                "total_jobs": sum(counts.values()),
                "timed_out_jobs": self.bridge.timed_out,
                "failed_jobs": counts.get(JobState.FAILED.value, 0),
                "default_timeout": self.settings.job_s,
            },
            "results": {"dropped": dict(self.bridge.intake.dropped)},
        }

    async def reset(self) -> dict[str, Any]:
        """Delete what came by this way, and nothing else that the server keeps."""
        queues = [*every_queue(self.fleet.state.agents.values()), RESULTS_QUEUE]
        queues += [held_queue(name, worker_id) for worker_id in self.workers.names() for name in queues[:-1]]
        for row in await self.fleet.context.read(campaigns.every):
            await self.fleet.experiments.delete(row.id, force=True, who=WHO)
        for worker in await self.workers.workers_known():
            await self.workers.dismiss(worker["worker_id"])
        try:
            await self.bridge.queues.clear(queues)
        except TransportError as exc:  # what is left there names jobs that nobody knows
            self.fleet.context.hook("sark_queues", connected=False, message=exc.message)
        self.bridge.start_over()
        cleared = {f"{noun}_cleared": True for noun in ("workers", "jobs", "results", "campaigns")}
        return {"status": "reset", "message": "All data cleared successfully"} | cleared


def _show_campaign(row: Row[Any], jobs: Sequence[Row[Any]], around: Around) -> dict[str, Any]:
    return shown_campaign(row, experiment_of(row).recipe.work(ModelWorkload).model, jobs, around)
