"""Dumont worker for tests: register, send heartbeats, take jobs, run and report them."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dumont.faults import Fault
from dumont.wire import Orchestrator, Queues

log = logging.getLogger("worker.worker_agent")
Benchmark = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Pace:
    """Its own are 10 s and 1 s; tests have less time. `work_s`: how long each job takes at least."""

    heartbeat_s: float = 10.0
    idle_s: float = 1.0
    work_s: float = 0.0


@dataclass
class Worker:
    orchestrator: Orchestrator
    queues: Queues
    device: Mapping[str, str]
    capabilities: tuple[str, ...]
    benchmark: Benchmark
    fault: Fault
    pace: Pace = Pace()
    worker_id: str = ""

    def register(self) -> bool:
        known = ("DeviceName", "Soc", "Ram", "DeviceOs", "DeviceOsVersion")
        body = {
            "device_name": self.device["DeviceName"],
            "ip_address": "localhost",
            "capabilities": list(self.capabilities),
            "device_info": {key: self.device[key] for key in known},
        }
        try:
            status, answer = self.orchestrator.register(body)
        except OSError as exc:
            log.warning("Failed to register with orchestrator: %s", exc)
            return False
        if status != 200:
            log.error("Failed to register: %s", status)
            return False
        self.worker_id = answer["worker_id"]
        log.info("Registered with orchestrator as %s", self.worker_id)
        return True

    def run(self) -> None:
        """Take job after job. Returns at once, as if all were well, where there is no Redis."""
        if not self.queues.is_connected():
            log.error("Redis not connected")
            return
        threading.Thread(target=self._beat, daemon=True).start()
        log.info("Starting job loop for worker %s", self.worker_id)
        names = [f"jobs:{self.worker_id}", *map(_queue, self.capabilities)]
        while True:
            job_id = self.queues.pop(names)
            if job_id is None:
                time.sleep(self.pace.idle_s)
            else:
                self._take(job_id)

    def _take(self, job_id: str) -> None:
        self.fault.job()
        log.info("Got job %s", job_id)
        self.fault.at("after-pop")
        job = self._looked_up(job_id)
        self.fault.at("after-fetch")
        if job is None:
            log.warning("Could not fetch job details for %s", job_id)
            return
        result = self._executed(job)
        self.fault.at("before-result")
        self._publish(result)
        self.fault.at("after-result")

    def _looked_up(self, job_id: str) -> Mapping[str, Any] | None:
        try:
            status, answer = self.orchestrator.job(job_id)
        except OSError as exc:
            log.warning("Failed to get job details: %s", exc)
            return None
        if status != 200 or not isinstance(answer, dict):
            return None
        found: Mapping[str, Any] | None = answer.get("job")
        return found

    def _executed(self, job: Mapping[str, Any]) -> dict[str, Any]:
        job_id, unit = job["job_id"], job.get("compute_unit", "CPU")
        log.info("Executing job %s - Model: %s, Compute: %s", job_id, job["model_url"], unit)
        self._say("busy")
        head = {"job_id": job_id, "campaign_id": job.get("campaign_id"), "worker_id": self.worker_id}
        about = {"ComputeUnits": unit, **self.device}
        try:
            self.fault.during_the_job()
            time.sleep(self.pace.work_s)
            figures = self.benchmark(job)
            result = head | {"status": "Complete", "FileName": "", "FileSize": 0} | about | figures
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is reported and the next job taken
            log.warning("Job %s failed: %s", job_id, exc)
            result = head | {"status": "Failed", "remark": str(exc), "FileName": "", "FileSize": 0} | about
        self._say("active")
        return result

    def _publish(self, result: Mapping[str, Any]) -> None:
        texts = [json.dumps(result)]
        if self.fault.strikes("lost"):
            texts = []
        elif self.fault.strikes("twice"):
            texts *= 2
        elif self.fault.strikes("unknown"):
            texts.insert(0, json.dumps({**result, "job_id": f"{result['job_id']}-of-nobody"}))
        elif self.fault.strikes("malformed"):
            texts = [texts[0][:-20], "[]", "\u0000", '{"status": "Complete"}']
        for text in texts:
            if self.queues.push(text):
                log.info("Published result for job %s", result["job_id"])

    def _say(self, status: str) -> None:
        try:
            if (answer := self.orchestrator.status(self.worker_id, status)) != 200:
                log.warning("Failed to update status: %s", answer)
        except OSError as exc:
            log.warning("Failed to update status: %s", exc)

    def _beat(self) -> None:
        """Say that it lives, whether or not it does anything; what is answered changes nothing."""
        while True:
            if not self.fault.is_mute:
                try:
                    if (answer := self.orchestrator.heartbeat(self.worker_id, time.time())) != 200:
                        log.warning("Heartbeat failed: %s", answer)
                except OSError as exc:
                    log.warning("Heartbeat error: %s", exc)
            time.sleep(self.pace.heartbeat_s)


def _queue(capability: str) -> str:
    return "jobs:capability:" + capability.lower().replace(" ", "_").replace("(", "").replace(")", "")
