"""Check a service's job, load the plug-ins it names, say what it needs of a device, and make its paths absolute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import InputError, PronyError, about_key
from prony.kinds.service.schema import ServiceWorkload
from prony.load.arrivals import read_trace
from prony.load.endpoint import make_certificate_absolute, parse_endpoint
from prony.model.assumption import Assumption
from prony.model.container import POD, WITH_APPTAINER
from prony.model.device import AbilityReport
from prony.model.job import Job
from prony.model.recipe import Recipe
from prony.ports import plugins
from prony.ports.driver import Driver, PredictsTexts, Task
from prony.ports.find_task import find_task, make_options_absolute, read_plugin_options
from prony.ports.service import ReadsFiles, Service, starting_option
from prony.ports.workload import Needs, Prepare
from prony.runner.context import RunContext


@dataclass(frozen=True)
class Chosen:
    """One of each kind, and what the recipe says to it; no service where the endpoint runs already, no task where the
    driver asks nothing."""

    driver: Driver
    options: Any
    service: Service | None = None
    settings: Any = None
    task: Task | None = None
    prompts: Any = None


def chosen(workload: ServiceWorkload) -> Chosen:
    """Return what a workload names; a name that no plug-in has or an option that it does not take is refused."""
    service: Service | None = None
    settings: Any = None
    if workload.service is not None:
        service = plugins.load_plugin(plugins.SERVICES, workload.service)()
        settings = read_plugin_options(service, workload.settings, "workload.settings")
    elif workload.endpoint is None:
        hint = "service: redis, or endpoint: http://host:8000 with a driver"
        raise InputError("a service workload needs a service or an endpoint", hint=hint, code="recipe")
    name = workload.driver or (service.driver if service is not None else "")
    if not name:
        raise InputError(
            "workload.driver is missing",
            hint="add it, such as `driver: http`; `prony drivers` lists them",
            code="recipe",
        )
    driver: Driver = plugins.load_plugin(plugins.DRIVERS, name)()
    options = read_plugin_options(driver, workload.options, "workload.options")
    if not driver.asks:
        if workload.task is not None or workload.prompts:
            given = {"workload.task": workload.task is not None, "workload.prompts": bool(workload.prompts)}
            hint = f"remove {' and '.join(key for key, is_given in given.items() if is_given)}"
            raise InputError(f"the driver {name} does not use LLM prompts", hint=hint, code="recipe")
        return Chosen(driver, options, service, settings)
    task, prompts = find_task(workload.task, workload.prompts)
    if isinstance(task, PredictsTexts) and not isinstance(driver, PredictsTexts):
        raise InputError(
            f"the task {task.name} needs the likelihood of a text, which the driver {name} cannot request",
            hint="use workload.driver: openai-completions, and a server that supports echo and logprobs", code="recipe",
        )  # fmt: skip
    return Chosen(driver, options, service, settings, task, prompts)


# Which key an error is about, by its code; the others are about the service.
_KEYS = {
    "unknown_driver": "workload.driver", "unknown_task": "workload.task", "input": "workload.endpoint",
    "not_found": "load.replay.file", "bad_trace": "load.replay.file",
}  # fmt: skip


class ServicePrepare(Prepare):
    """Before a service is loaded."""

    def check(self, job: Job) -> None:
        picked = chosen(job.work(ServiceWorkload))
        if picked.task is None and (job.load.cache != "as-is" or job.load.same_text):
            raise InputError(
                f"load.cache and load.same_text need LLM prompts, which the driver {picked.driver.name} does not send",
                hint="remove them; `prony docs load` says more of caches and drivers",
                code="recipe",
            )
        if job.load.clients.on is not None and picked.service is None:
            raise InputError(
                "load.clients.on is for a service that Prony starts, on a node apart from its clients",
                hint="for an endpoint, remove it: place.on says where the clients run",
                code="recipe",
            )
        if job.load.clients.agents > 1 and picked.driver.makes:
            raise InputError(
                f"the driver {picked.driver.name} writes test data to the endpoint, so several agents would disturb "
                "each other",
                hint="remove load.clients.agents, and use more load.clients.processes",
                code="recipe",
            )
        if job.agents > 1 and job.work(ServiceWorkload).restart == "each-run":
            raise InputError(
                "workload.restart: each-run does not work with several agents",
                hint="use workload.restart: once, or remove load.clients",
                code="recipe",
            )

    def needs(self, workload: ServiceWorkload) -> Needs:
        """Return what starts the service. Of a program that the recipe names itself only the agent's disk knows."""
        if workload.service is None:
            return {}
        kind = plugins.load_plugin(plugins.SERVICES, workload.service)
        by = starting_option(kind.Options, workload.settings)
        if by == "image":
            return {"containers": (*WITH_APPTAINER, POD)}
        return {"service": workload.service} if by is None else {}

    def service_images(self, job: Job) -> tuple[str, ...]:
        workload = job.work(ServiceWorkload)
        image = workload.settings.get("image") if workload.service is not None else None
        return (image,) if isinstance(image, str) and image else ()

    def images(self, job: Job) -> tuple[str, ...]:
        return self.service_images(job)

    def access(self, engines: Sequence[str], abilities: Sequence[AbilityReport]) -> tuple[str, ...]:
        del engines
        has_service = any(one.kind == "service" and (one.state == "ready" or one.means) for one in abilities)
        return ("gray", "black") if has_service else ("black",)

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        """Return the job with the paths in its options made absolute: those that a plug-in says are paths."""
        workload = job.work(ServiceWorkload)
        changes: dict[str, Any] = {}
        picked = chosen(workload)
        for field, plugin in (("settings", picked.service), ("options", picked.driver), ("prompts", picked.task)):
            if plugin is not None:
                changes[field] = make_options_absolute(getattr(workload, field), plugin.Options, base)
        load = job.load
        if load.replay is not None:
            replay = load.replay.model_copy(
                update={"file": str((base / Path(load.replay.file).expanduser()).absolute())}
            )
            load = load.model_copy(update={"replay": replay})
        if workload.endpoint is not None:
            changes["endpoint"] = make_certificate_absolute(workload.endpoint, base)
        return job.model_copy(update={"workload": workload.model_copy(update=changes), "load": load})

    def expected_seconds(self, job: Job) -> float | None:
        lasts = job.load.duration_ns
        if job.load.stages is not None:
            lasts = sum(stage.duration for stage in job.load.stages)
        return None if lasts is None else job.load.repeats * lasts / 1e9

    def client_processes(self, recipe: Recipe) -> int:
        return recipe.load.clients.processes or 1

    def refusals_here(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Say of a service that cannot be started here why; a recipe is mostly checked where it is not run."""
        found = (_unavailable(job.work(ServiceWorkload)) for job in jobs)
        return tuple(dict.fromkeys(filter(None, found)))

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        """Look for what starts the service, and read its files, the address and the trace. No service is started."""
        workload = job.work(ServiceWorkload)
        _check_service(workload, context.base)
        if workload.endpoint is not None:
            parse_endpoint(workload.endpoint, context.base)
        if job.load.replay is not None:
            read_trace(Path(job.load.replay.file), layout=job.load.replay.layout)
        return ()

    def key_behind(self, error: PronyError) -> str:
        return _KEYS.get(error.code, "workload.service")

    def named_options(self, job: Job) -> Iterator[tuple[str, Any]]:
        picked = chosen(job.work(ServiceWorkload))
        for name in ("settings", "options", "prompts"):
            yield f"workload.{name}", getattr(picked, name)


def _check_service(workload: ServiceWorkload, base: Path) -> None:
    """Refuse a service that cannot be started here, at the key that says how it is started."""
    from prony.runner.services.host import check_startable

    picked = chosen(workload)
    if picked.service is None:
        return
    said = next((name for name in ("image", "program", "command") if workload.settings.get(name)), "")
    with about_key(f"workload.settings.{said}" if said else "workload.service"):
        check_startable(picked.service, picked.settings)
    if isinstance(picked.service, ReadsFiles):
        picked.service.check_files(picked.settings, base)


def _unavailable(workload: ServiceWorkload) -> str:
    picked = chosen(workload)
    reason = None if picked.service is None else picked.service.available(picked.settings)
    return "" if reason is None else f"prony run cannot start {workload.service} on this machine: {reason}"


PART = ServicePrepare()
