"""What a group of jobs loads: a service that is started, again where each run wants a new one, or an endpoint.

Where a server's memory lies is decided when it starts and decides its speed by some percent. Runs that share one start
agree with each other more than they do with the next result, so a service that starts quickly is started for each.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prony.kinds.service.prepare import Chosen
from prony.kinds.service.schema import ServiceWorkload
from prony.model.clients import ServiceFacts
from prony.model.job import Job
from prony.ports.driver import Endpoint
from prony.ports.service import read_back_options
from prony.runner.containers import engine_of_services
from prony.runner.context import RunContext
from prony.runner.images import ReadyImage, prepare_image
from prony.runner.watch_machine import MachineWatch

if TYPE_CHECKING:
    from prony.runner.services.host import Running

# What a start and its data may take where nobody says that each run wants them anew: five runs cost ten seconds more.
QUICK_S = 2.0
_SHARED = "clients of other agents ran on this machine, so their use cannot be separated from that of other programs"


class ServiceStarter:
    """Starts a job's service as often as it is asked to, one at a time. Leaving the block ends it."""

    def __init__(self, job: Job, picked: Chosen, around: RunContext) -> None:
        self._job, self._picked, self._around = job, picked, around
        self._workload = job.work(ServiceWorkload)
        self._block = ExitStack()
        self._image: ReadyImage | None = None

    def __enter__(self) -> ServiceStarter:
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()

    def open_scene(self, log: Path) -> Scene:
        """Start the service for the first time; return it with what it tells of itself."""
        # Before the clock: how long a pull takes says nothing of how long the next start will.
        with self._around.interruptible():
            self._image = _prepare_image_of(self._job, self._workload, self._around.cache)
        begin_ns = self._around.clock.monotonic_ns()
        running = self.start(log)
        start_s = (self._around.clock.monotonic_ns() - begin_ns) / 1e9
        return Scene(running.endpoint, self._facts(running), self.page(running), running, starter=self, start_s=start_s)

    def start(self, log: Path) -> Running:
        """End the service where it runs, and return a new one that serves."""
        from prony.runner.services.host import Wish, start_service

        assert self._picked.service is not None
        self._block.close()
        wish = Wish(
            log, self._around.base, self._job.limits.timeout / 1e9, self._around.stop_asked,
            is_shared=self._job.load.clients.on is not None,
        )  # fmt: skip
        settings = self._picked.settings
        if self._image is not None:
            settings = settings.model_copy(update={"image": self._image.reference})
        starting = start_service(self._picked.service, settings, wish)
        return self._block.enter_context(starting)

    def page(self, running: Running) -> str:
        """Return the address of the metrics to read: the recipe's, or the service's own."""
        return self._workload.metrics_url or running.metrics_url

    def _digest_of_image(self) -> dict[str, str]:
        digest = self._image.digest if self._image is not None else None
        return {} if digest is None else {f"image {self._workload.settings['image']}": digest}

    def _facts(self, running: Running) -> ServiceFacts:
        assert self._picked.service is not None
        told = dict(running.facts)
        return ServiceFacts(
            name=self._workload.service or "",
            version=told.pop("version", ""),
            settings=told | self._digest_of_image(),
            settable=read_back_options(self._picked.service.Options, told),
            command=tuple(running.command),
            pid=running.pid,
        )


@dataclass
class Scene:
    """What is loaded. `is_shared`: with other agents of a gang, on this very machine. `restarts`: before each run."""

    endpoint: Endpoint
    facts: ServiceFacts
    metrics_url: str = ""
    running: Running | None = None
    is_shared: bool = False
    starter: ServiceStarter | None = None
    start_s: float = 0.0
    restarts: bool = False
    # Since the last start: the jobs whose data it holds, and whether any of them loaded it.
    prepared: set[str] = field(default_factory=set)
    was_loaded: bool = False

    def is_new_for(self, job: Job) -> bool:
        """Does it hold what this job made there, and nothing else?"""
        return self.running is not None and not self.was_loaded and self.prepared == {job.id}

    def is_quick_to_restart(self, job: Job, *, asks: bool, prepare_s: float) -> bool:
        """May each run of this job have a new start where the recipe leaves that open?

        A server of an LLM (`asks`) keeps what it compiled and cached: that is part of what is measured. The probes of a
        search are held against each other, so they load one server. Agents of a gang agree once on where it is. One
        with a port of its own may find it still taken by connections of the last run."""
        is_one_server = asks or job.load.search is not None or job.agents > 1
        moves = self.running is not None and not self.running.has_own_port
        return moves and not is_one_server and self.start_s + prepare_s <= QUICK_S

    def start_again(self, log: Path) -> None:
        """Take a new start of the service in the place of the last one."""
        assert self.starter is not None
        self.running, self.prepared, self.was_loaded = None, set(), False
        self.running = self.starter.start(log)
        self.endpoint, self.metrics_url = self.running.endpoint, self.starter.page(self.running)

    def watch(self) -> MachineWatch:
        """Return what watches the machine: a service that was started here is among our own processes, unless a daemon
        runs it."""
        if self.is_shared:
            return MachineWatch(blind=_SHARED)
        if self.running is not None and not self.running.is_run_by_daemon:
            return MachineWatch()
        return MachineWatch(self.endpoint)


def _prepare_image_of(job: Job, workload: ServiceWorkload, cache: Path) -> ReadyImage | None:
    """Return the image that the service runs in, brought here; None where it runs in none."""
    image, engine = workload.settings.get("image"), engine_of_services()
    if not isinstance(image, str) or engine is None:
        return None
    return prepare_image(engine, image, cache, digest=job.images.get(image))
