"""Run jobs that load a service and write their result folders.

Jobs that want the same service share one, and take turns on it, or have a new start of it before each run.

A search's next load is chosen from its probes, each judged on its requests.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.instruments.columns import Requests
from prony.instruments.window import Window
from prony.instruments.within_limit import counts_within
from prony.kinds.service.prepare import Chosen, chosen
from prony.kinds.service.runner.loading import LoadJobRun, SeenLoad, check_answers
from prony.kinds.service.runner.scene import Scene, ServiceStarter
from prony.kinds.service.schema import ServiceWorkload
from prony.load.endpoint import parse_endpoint
from prony.load.search import plan_search, probe_load, slo_as_shares
from prony.model.clients import ServiceFacts
from prony.model.event import Event, Live
from prony.model.job import Job
from prony.model.load import Load
from prony.model.result import Failure, Repetition, Result
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.folder import ResultFolder, begin_folders
from prony.runner.gang import Gang, gang_of
from prony.runner.load_telemetry import LoadTelemetry, MetricsPage
from prony.runner.observer import use_probes
from prony.runner.scorer import score_by_recipe
from prony.runner.turns import is_never_quiet, take_turns, wants_replacement, why_made_again

if TYPE_CHECKING:
    from prony.ports.probe import Probe


_GIVE_UP_AFTER = 2
_START = "start"  # the phase of a failure to start the service


class ServiceRunner:
    """Runs jobs that load services."""

    def __init__(self, around: RunContext) -> None:
        self.around = around
        self._scratch = Path(tempfile.mkdtemp(prefix="prony-load-"))
        self._probes: list[Probe] = []

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            environment = self.around.environment()
            begun = begin_folders(jobs, folders, environment, self.around.clock)
            with use_probes() as self._probes:
                for groups in _stages(begun):
                    self._together(groups)
            return [folder.result for folder in begun]
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _together(self, groups: Sequence[Sequence[ResultFolder]]) -> None:
        """Start what the jobs of each group share, let all take turns, and stop it; what fails of it is each one's
        failure."""
        folders = [folder for group in groups for folder in group]
        try:
            with ExitStack() as stack:
                placed = [pair for group in groups for pair in self._open_group(stack, group)]
                _decide_restarts(placed)
                for pair in placed:
                    self._begin(*pair)
                searches = {id(one): Searching(one.job.load) for one, _ in placed if one.job.load.search is not None}
                take_turns(
                    placed, lambda pair: self._again(*pair, searches.get(id(pair[0]))),
                    seed=folders[0].job.seed, stop_asked=self.around.stop_asked,
                )  # fmt: skip
                for course, scene in placed:
                    self._finish(course, scene)
        except Stopped:
            self._give_up(folders, Failure(code="cancelled", message="stopped before it started", whose="prony"))
        except PronyError as exc:
            self._give_up(folders, failure_of(exc, phase=_START))

    def _open_group(self, stack: ExitStack, folders: Sequence[ResultFolder]) -> Iterator[tuple[LoadJobRun, Scene]]:
        """Start what the jobs of one group share and get each ready; yield those that are, with what they load."""
        picked = [chosen(folder.job.work(ServiceWorkload)) for folder in folders]
        gangs = [gang_of(folder.job, self.around.emit, self.around.stop_asked) for folder in folders]
        scene = stack.enter_context(self._scene(folders[0], picked[0], gangs[0]))
        for folder, one, gang in zip(folders, picked, gangs, strict=True):
            course = self._prepare(scene, folder, one, gang)
            if course is not None:
                yield course, scene

    @contextmanager
    def _scene(self, folder: ResultFolder, picked: Chosen, gang: Gang | None) -> Iterator[Scene]:
        """Give what is loaded. The first of a gang starts it; the others only hear where it is."""
        if gang is None:
            with self._own_scene(folder, picked) as scene:
                yield scene
        elif gang.part.index == 0:
            with self._own_scene(folder, picked) as scene:
                gang.agree_on_endpoint(scene.endpoint, "" if gang.sends else self.around.address)
                scene.is_shared = gang.is_one_machine
                yield scene
        else:
            url = folder.job.work(ServiceWorkload).endpoint
            endpoint = gang.agree_on_endpoint(None)
            facts = ServiceFacts(endpoint=_show_endpoint(url) if url else "")
            yield Scene(endpoint, facts, "", is_shared=gang.is_one_machine)

    @contextmanager
    def _own_scene(self, folder: ResultFolder, picked: Chosen) -> Iterator[Scene]:
        workload, job = folder.job.work(ServiceWorkload), folder.job
        if picked.service is None:
            url = workload.endpoint or ""
            yield Scene(
                parse_endpoint(url, self.around.base),
                ServiceFacts(endpoint=_show_endpoint(url)),
                workload.metrics_url or "",
            )
            return
        self.around.say("prepare", job, message=f"starting {workload.service}")
        with ServiceStarter(job, picked, self.around) as starter:
            yield starter.open_scene(folder.path / "logs" / "service.log")

    def _prepare(self, scene: Scene, folder: ResultFolder, picked: Chosen, gang: Gang | None) -> LoadJobRun | None:
        job = folder.job
        self.around.say("prepare", job, message="making requests")
        course = LoadJobRun(folder, picked, self.around, scratch=self._scratch, gang=gang)

        def prepare() -> LoadJobRun:
            course.prepare(scene.endpoint)
            return course

        if self.around.prepare_job(folder, prepare) is None:
            course.finish()
            return None
        scene.prepared.add(job.id)
        return course

    def _begin(self, course: LoadJobRun, scene: Scene) -> None:
        """Write down what the job loads before its first run."""
        facts = scene.facts.model_copy(update={"notes": scene.facts.notes | course.notes})
        if scene.starter is not None:
            restart, ready_s = "each-run" if scene.restarts else "once", scene.start_s + course.prepare_s
            facts = facts.model_copy(update={"restart": restart, "ready_s": ready_s})
        course.folder.update(service=facts)
        course.folder.save()
        self.around.say("started", course.job, total=_count_runs(course.job))

    # Turns

    def _again(self, course: LoadJobRun, scene: Scene, search: Searching | None) -> bool:
        """Carry out one more run where one is wanted; return whether another may be."""
        if _hopeless(course) or (search is None and not _wants_run(course)):
            return False
        try:
            return self._run_once(course, scene, search)
        except Stopped:  # while its service was started again: the runs that there are count
            return False

    def _run_once(self, course: LoadJobRun, scene: Scene, search: Searching | None) -> bool:
        if search is None:
            self._repeat(course, scene, None)
            return _wants_run(course)
        probe = search.next()
        if probe is None:
            return False
        repetition = self._repeat(course, scene, probe)
        search.tell(probe.level, course.folder.requests_part(repetition.index), repetition)
        return True

    def _repeat(self, course: LoadJobRun, scene: Scene, probe: Probed | None) -> Repetition:
        job, index = course.job, len(course.repetitions)
        total = max(_count_runs(job), index + 1)
        self.around.say("repetition", job, done=index, total=total)
        repetition = self._renew_and_load(course, scene, probe)
        course.folder.add(repetition)
        trouble = why_made_again(repetition)
        self.around.say("repetition", job, done=index + 1, total=total, state=repetition.state, message=trouble)
        return repetition

    def _renew_and_load(self, course: LoadJobRun, scene: Scene, probe: Probed | None) -> Repetition:
        """Start the service again where this run wants it new, then load it; what fails of either is this run's."""
        index, level = len(course.repetitions), None if probe is None else probe.level
        if scene.restarts and not scene.is_new_for(course.job):
            started_at = self.around.clock.now()
            try:
                self._start_again(course, scene)
            except PronyError as exc:
                failure = failure_of(exc, phase=_START)
                return Repetition(index=index, state="failed", started_at=started_at, failure=failure, level=level)
        is_new, scene.was_loaded = not scene.was_loaded, True
        repetition = self._load(course, scene, probe)
        if scene.running is None or not is_new:
            return repetition
        return repetition.model_copy(update={"service_start_ms": scene.running.started_ms})

    def _start_again(self, course: LoadJobRun, scene: Scene) -> None:
        """Give a run a new start of its service, with its data made again; none of it is measured.

        Raises:
            Stopped: Somebody asked to stop meanwhile.
        """
        log = course.folder.path / "logs" / f"service-{len(course.repetitions) + 1}.log"
        try:
            scene.start_again(log)
            with self.around.interruptible():
                course.prepare_again(scene.endpoint)
        except PronyError as exc:
            if self.around.stop_asked():
                raise Stopped from exc
            raise
        scene.prepared.add(course.job.id)

    def _load(self, course: LoadJobRun, scene: Scene, probe: Probed | None) -> Repetition:
        """Carry out one whole load, with the machine's canary before and after it."""
        job, index = course.job, len(course.repetitions)
        started_at, client, before = self.around.clock.now(), None, read_canary()
        page = MetricsPage(scene.metrics_url) if scene.metrics_url else None
        running = scene.running
        own = (None, None) if running is None or scene.is_shared else (running.cpu_s, running.rss_mib)
        beside = LoadTelemetry(self._probes, page, scene.watch(), *own)
        seen = SeenLoad(lambda live: self._live(job, live.model_copy(update={"run": index})), self.around.stop_asked)
        load, level = (job.load, None) if probe is None else (probe.load, probe.level)
        try:
            repetition = course.run(load, beside, seen, started_at, level=level)
            client = repetition.client
            if running is not None:
                running.check()  # one that died under the load failed, however many answers it gave before
            check_answers(repetition, course.error_statuses)
        except PronyError as exc:
            failure = failure_of(exc, phase="load")
            repetition = Repetition(
                index=index, state="failed", started_at=started_at, failure=failure, client=client, level=level
            )
        return repetition.model_copy(update={"canary_before": before, "canary_after": read_canary()})

    # Ends

    def _finish(self, course: LoadJobRun, scene: Scene) -> None:
        left = course.finish(clean_up=not scene.restarts)
        if course.gang is not None and course.gang.first_sender:
            course.gang.meet("cleaned")  # until then the service must be there
        if left:
            course.folder.update(service=_add_note(course.folder.result, "left behind", left))
        self._score(course)
        good = any(one.state == "ok" for one in course.repetitions)
        good = good and not (course.gang is not None and _hopeless(course))
        stopped = self.around.stop_asked() and len(course.repetitions) < _count_runs(course.job)
        stopped = stopped or any(one.state == "cancelled" for one in course.repetitions)
        self.around.end_job(course.folder, course.telemetry, is_good=good, is_stopped=stopped)

    def _score(self, course: LoadJobRun) -> None:
        """Let the recipe's own scorer look at the answers. One that fails costs its scores and nothing else."""
        trouble = score_by_recipe(
            course.folder.path, course.chosen.prompts, course.job.limits.memory,
            lambda text: self.around.say("prepare", course.job, message=text),
        )  # fmt: skip
        if trouble:
            course.folder.update(service=_add_note(course.folder.result, "scorer", trouble))

    def _give_up(self, folders: Sequence[ResultFolder], failure: Failure) -> None:
        for folder in folders:
            if folder.result.ended_at is None:
                self.around.give_up(folder, failure)

    def _live(self, job: Job, live: Live) -> None:
        self.around.emit(Event(kind="load", job_id=job.id, live=live))


def _groups(folders: Sequence[ResultFolder]) -> list[list[ResultFolder]]:
    """Return the jobs that load the same thing, together and in their order."""
    groups: dict[str, list[ResultFolder]] = {}
    for folder in folders:
        work = folder.job.work(ServiceWorkload)
        groups.setdefault(json.dumps([work.service, work.settings, work.endpoint, work.restart]), []).append(folder)
    return list(groups.values())


def _stages(folders: Sequence[ResultFolder]) -> list[list[list[ResultFolder]]]:
    """Return the groups that are up at the same time: both sides of a duet, or else each by itself."""
    groups = _groups(folders)
    is_duet = any(folder.job.side is not None for folder in folders)
    return [groups] if is_duet else [[group] for group in groups]


def _decide_restarts(placed: Sequence[tuple[LoadJobRun, Scene]]) -> None:
    """Say of each service whether every run gets a new start. Jobs that take turns have the same where their recipes
    leave it open: a side of a duet that is started more often than the other would be no fair one."""
    words = [course.job.work(ServiceWorkload).restart for course, _ in placed]
    all_quick = all(
        scene.is_quick_to_restart(course.job, asks=course.chosen.task is not None, prepare_s=course.prepare_s)
        for (course, scene), word in zip(placed, words, strict=True)
        if word == "auto"
    )
    for (_, scene), word in zip(placed, words, strict=True):
        scene.restarts = scene.starter is not None and (word == "each-run" or (word == "auto" and all_quick))


def _count_runs(job: Job) -> int:
    """Return how many runs a job takes; how many a search takes is not known before."""
    return 1 if job.load.search is not None else job.load.repeats


def _wants_run(course: LoadJobRun) -> bool:
    """Are there fewer runs than planned, or is one to be made in place of a disturbed one? One of a gang makes as many
    as the others; all else stops where no undisturbed run is in sight."""
    planned, done = course.job.load.repeats, course.repetitions
    if course.gang is not None:
        return len(done) < planned
    return not is_never_quiet(planned, done) and (len(done) < planned or wants_replacement(planned, done))


def _hopeless(course: LoadJobRun) -> bool:
    """Would another run say the same? One that failed for one of a gang is none for the others either, and a service
    that did not start twice in a row will not."""
    done = course.repetitions
    if course.gang is not None:
        return any(one.state == "failed" for one in done)
    latest = [one.failure for one in done[-_GIVE_UP_AFTER:]]
    never_starts = all(failure is not None and failure.phase == _START for failure in latest)
    return len(done) >= _GIVE_UP_AFTER and (never_starts or all(one.state == "failed" for one in done))


def _add_note(result: Result, name: str, text: str) -> ServiceFacts:
    facts = result.service or ServiceFacts()
    return facts.model_copy(update={"notes": facts.notes | {name: text}})


def _show_endpoint(url: str) -> str:
    """Return an endpoint without what is secret in it."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}@{place}"))


@dataclass(frozen=True)
class Probed:
    """One load that is to be held, and its level."""

    load: Load
    level: float


class Searching:
    """One job's search."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._search = plan_search(load)
        self._wanted = slo_as_shares(load.slo)

    def next(self) -> Probed | None:
        """Return the next probe, or None where the search is over."""
        level = self._search.next()
        return None if level is None else Probed(probe_load(self._load, level, self._search.attempt), level)

    def tell(self, level: float, requests: Path, repetition: Repetition) -> None:
        """Judge a probe. One that failed as a whole did not hold."""
        if repetition.state != "ok" or not requests.exists():
            self._search.tell(level, held=False)
            return
        import polars as pl

        # All requests of a probe count, so that its window matters to none.
        run = Requests.of(pl.read_parquet(requests), repetition.index, Window(0, 0))
        self._search.count(level, counts_within(run, self._wanted))
