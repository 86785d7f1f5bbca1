"""One job that loads a service: prepared once, then one whole load a repetition, each on the disk before the next."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from prony.errors import InputError, MeasurementError, PronyError, SutError
from prony.instruments.kept_answers import append_answers
from prony.instruments.memory import give_back_memory
from prony.instruments.request_lines import frame_of
from prony.instruments.requests import Digests, Taken, begin_ns, empty_frame, request_frame
from prony.instruments.window import Sent, find_window
from prony.kinds.service.prepare import Chosen
from prony.kinds.service.runner.keep_answers import AnswerKeeper
from prony.kinds.service.runner.prompt_cache import PromptCache, salt_prompts
from prony.load.generator import LoadPlan, LostClientError, at_once, generate, processes_of
from prony.load.live import LiveFigures
from prony.load.outcome import LoadOutcome
from prony.load.schedule import LoadSchedule, plan
from prony.model.clients import ClientSide, ServiceFacts
from prony.model.event import Live as Shown
from prony.model.load import WAYS, Closed, Load
from prony.model.result import Failure, Phase, Repetition
from prony.ports.driver import Cause, Endpoint, Keeps, Prepared, Prompt, ScoresAnswers, Wants, describe_cuts
from prony.runner.clients import client_side
from prony.runner.context import RunContext, failure_of
from prony.runner.folder import ResultFolder, TelemetryRow, write_frame
from prony.runner.gang import Gang
from prony.runner.load_telemetry import LoadTelemetry

# So many prompts are made where time and no count decides: then they come again from the first.
_PROMPTS = 1000
_MOST_FILLING = 16
_M_MMAP_THRESHOLD, _LARGE = -3, 2**16


@dataclass(frozen=True)
class SeenLoad:
    """Who is told while a load runs, and who may stop it."""

    on_live: Callable[[Shown], None]
    stop_asked: Callable[[], bool]


# By the cause that most requests have.
_ALL_FAILED_HINTS = {
    "refused": "start the service, or correct the address and the port",
    "status": "check the path, the method, the body and the token that the endpoint needs",
    "timeout": "raise load.timeout, or lower the load",
}


class LoadJobRun:
    """A job on its way."""

    def __init__(
        self, folder: ResultFolder, chosen: Chosen, around: RunContext, *, scratch: Path, gang: Gang | None
    ) -> None:
        self.job = job = folder.job
        self.folder = folder
        self.chosen = chosen
        self.gang = gang
        self.telemetry: list[TelemetryRow] = []
        self._base = around.base
        self._clock = around.clock
        self._clients = around.clients
        self._scratch = scratch / job.id
        self._endpoint = Endpoint()
        self._prepared: Prepared | None = None
        self._asked: tuple[Prompt, ...] = ()
        self._cache = PromptCache(job.load, chosen.driver, gang) if chosen.task is not None else None
        self._is_cache_filled = False
        self.schedule: LoadSchedule | None = None
        self.error_statuses: tuple[int, ...] = ()  # of the last load
        self.prepare_s = 0.0

    @property
    def repetitions(self) -> tuple[Repetition, ...]:
        return self.folder.result.repetitions

    @property
    def sends(self) -> bool:
        """Are requests sent from here, or does another part of a gang send them?"""
        return self.gang is None or self.gang.sends

    @property
    def notes(self) -> dict[str, str]:
        return {**self._prepared.notes, **describe_cuts(self._asked)} if self._prepared is not None else {}

    def prepare(self, endpoint: Endpoint) -> None:
        """Make the schedule and every request."""
        load, begin_ns = self.job.load, self._clock.monotonic_ns()
        self._scratch.mkdir(parents=True, exist_ok=True)
        self.schedule = plan(load, base=self._base) if load.search is None else None
        self._asked = self._prompts(self.schedule.total if self.schedule is not None else None)
        if self.sends:
            self._prepared = self._make_requests(endpoint)
        if self._prepared is not None and self._prepared.command and load.way != "closed":
            raise InputError(
                f"the driver command needs load.closed, not load.{load.way}: each user runs the command once",
                hint="write load: {closed: {concurrency: 1}}",
                code="recipe",
            )
        if self._cache is not None:
            self._cache.agree_on_salt(self._asked)
        if self.gang is not None and self.schedule is not None:
            self.gang.agree_on_shares((self._processes(self.schedule) or 1) if self.sends else 0)
        self.prepare_s = (self._clock.monotonic_ns() - begin_ns) / 1e9

    def prepare_again(self, endpoint: Endpoint) -> None:
        """Make the same requests, and what they need at the endpoint, for a server that was started anew."""
        # What the last driver made is gone with its server, and nobody is to look for it there.
        self.chosen = replace(self.chosen, driver=type(self.chosen.driver)())
        self._prepared, self._is_cache_filled = None, False
        if self._cache is not None:
            self._cache.driver = self.chosen.driver
        self._prepared = self._make_requests(endpoint)

    def _make_requests(self, endpoint: Endpoint) -> Prepared:
        self._endpoint = endpoint
        wants = Wants(
            endpoint=endpoint,
            options=self.chosen.options,
            seed=self.job.load.seeds.prompts,
            count=self.schedule.total if self.schedule is not None else None,
            prompts=self._asked,
            scratch=self._scratch,
            base=self._base,
        )
        return self.chosen.driver.prepare(wants)

    def _processes(self, schedule: LoadSchedule) -> int | None:
        """Return how many processes send from here; None: as many as it takes."""
        asked, gang = self.job.load.clients.processes, self.gang
        return asked if gang is None else processes_of(schedule, asked, gang.senders)

    def _prompts(self, count: int | None) -> tuple[Prompt, ...]:
        task, load = self.chosen.task, self.job.load
        if task is None:
            return ()
        seeds = {"prompts": load.seeds.prompts, "lengths": load.seeds.lengths}
        lengths = self.schedule.lengths if self.schedule is not None else None
        wanted = _PROMPTS if count is None else min(count, max(_PROMPTS, 0 if lengths is None else len(lengths)))
        made = task.prompts(self.chosen.prompts, count=wanted, seeds=seeds, base=self._base, lengths=lengths)
        return salt_prompts(made) if load.is_salted else tuple(made)

    def run(
        self, load: Load, beside: LoadTelemetry, seen: SeenLoad, started_at: datetime, *, level: float | None
    ) -> Repetition:
        """Carry out one whole load and keep it; a client that died is this repetition's failure, and what it and the
        others recorded until then is kept too."""
        index = len(self.repetitions)
        if self.gang is not None and not self.gang.sends:
            return self._watch_service(self.gang, index, beside, seen, started_at)
        schedule = self.schedule if level is None else plan(load, base=self._base)
        if self._prepared is None or schedule is None:
            raise MeasurementError("the load was not prepared")
        scratch = self._scratch / f"{index:04d}"
        scratch.mkdir()
        if self._prepared.command:
            return self._run_command(index, self._prepared, beside, seen, started_at)
        gang = self.gang
        ground = self._plan_run(self._prepared, schedule, load, index, seen)
        start_at = at_once if gang is None else partial(gang.start, index)
        _keep_no_arrays()
        try:
            outcome, failure = _send_load(ground, beside, seen, start_at)
            outcome = _while_all_sent(outcome, load)
            self.error_statuses = _error_statuses(outcome)
            cache = self._cache.end_run() if self._cache is not None else None
            timing = gang.timing(index) if gang is not None else None
            side = client_side(outcome, schedule).model_copy(update={"timing": timing})
            repetition = _repetition(outcome, side, index, started_at, stopped=seen.stop_asked())
            repetition = repetition.model_copy(update={"cache": cache})
            if repetition.state == "ok" and gang is None and load.is_cut_at(len(outcome)):
                repetition = repetition.model_copy(update={"stopped_by": "time"})
            users = None if level is None else round(level)
            taken = self._collect_run(outcome, schedule, load, index, users)
            _import_polars()
            frame = request_frame(taken)
            del outcome, taken  # what they hold is in the frame now, and to write that takes memory too
            give_back_memory()
            write_frame(self.folder.requests_part(index), frame)
            del frame
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            del ground
            give_back_memory()
            self.telemetry += beside.rows(index)
        if failure is not None:
            repetition = repetition.model_copy(update={"state": "failed", "failure": failure})
        return beside.add_telemetry(repetition.model_copy(update={"level": level}))

    def _watch_service(
        self, gang: Gang, index: int, beside: LoadTelemetry, seen: SeenLoad, started_at: datetime
    ) -> Repetition:
        """Observe the service's machine while the other parts send one load."""
        phase_ns = gang.start(index)
        beside.begin()
        try:
            timing = gang.timing(index, on_tick=beside.tick)
        finally:
            beside.end()
            self.telemetry += beside.rows(index)
        phase = Phase(begin_ns=phase_ns, end_ns=self._clock.monotonic_ns(), cpu_ns=0, count=0)
        write_frame(self.folder.requests_part(index), empty_frame())
        state: Literal["ok", "cancelled"] = "cancelled" if seen.stop_asked() else "ok"
        return beside.add_telemetry(
            Repetition(index=index, state=state, started_at=started_at, phases={"measure": phase}, timing=timing)
        )

    def _plan_run(self, prepared: Prepared, schedule: LoadSchedule, load: Load, index: int, seen: SeenLoad) -> LoadPlan:
        """Return what a run needs, when all that the recipe wants done about the server's cache is done."""
        if load.cache == "warm" and not self._is_cache_filled:
            self._fill_cache(prepared, seen)
        salt = self._cache.begin_run(index) if self._cache is not None else ""
        share = self.gang.share if self.gang is not None else None
        scratch, processes = self._scratch / f"{index:04d}", self._processes(schedule)
        return LoadPlan(prepared, self._endpoint, schedule, load, scratch, processes, self._clients, share, salt)

    def _fill_cache(self, prepared: Prepared, seen: SeenLoad) -> None:
        """Send every prompt once, so that the first run of a server meets a warm cache as the others do.

        Nothing of it is kept."""
        users = min(self.job.load.users.concurrency, _MOST_FILLING, len(prepared.requests))
        ways = dict.fromkeys(WAYS) | {"closed": Closed(concurrency=users), "duration": None}
        once = self.job.load.model_copy(update=ways | {"requests": len(prepared.requests)})
        scratch = self._scratch / "fill"
        plan_once = LoadPlan(
            prepared, self._endpoint, plan(once, base=self._base), once, scratch, 1, self._clients, None
        )
        try:
            generate(plan_once, stop_asked=seen.stop_asked)
            self._is_cache_filled = True
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run_command(
        self, index: int, prepared: Prepared, beside: LoadTelemetry, seen: SeenLoad, started_at: datetime
    ) -> Repetition:
        """Let a command send one load, and keep what it wrote down."""
        from prony.runner.commands import CommandOrder, run_commands

        job, scratch = self.job, self._scratch / f"{index:04d}"
        limit_ns = job.load.duration_ns or job.limits.timeout
        order = CommandOrder(
            prepared.command, prepared.environment, self._endpoint, job.load.users.concurrency, limit_ns / 1e9,
            job.name, scratch, self.folder.path / "logs" / f"run-{index + 1}",
        )  # fmt: skip
        beside.begin()
        try:
            done = run_commands(order, seen.stop_asked, beside.tick)
            beside.end()
            write_frame(self.folder.requests_part(index), frame_of(done.log, done.begins, done.ends, index))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            self.telemetry += beside.rows(index)
        facts = self.folder.result.service or ServiceFacts()
        self.folder.update(service=facts.model_copy(update={"notes": {**facts.notes, **done.notes}}))
        stopped = seen.stop_asked()
        failure = None if done.failure is None or stopped else failure_of(done.failure, phase="load")
        phase = Phase(
            begin_ns=done.begin_ns, end_ns=done.end_ns, cpu_ns=round(done.cpu_s * 1e9), count=len(done.log.lines)
        )
        repetition = Repetition(
            index=index,
            state="cancelled" if stopped else "failed" if failure is not None else "ok",
            started_at=started_at,
            phases={"measure": phase},
            failure=failure,
            silent_clients=done.silent,
            stopped_by="stop" if stopped else "time" if done.is_cut and failure is None else None,
        )
        return beside.add_telemetry(repetition)

    def _collect_run(
        self, outcome: LoadOutcome, schedule: LoadSchedule, load: Load, index: int, users: int | None
    ) -> Taken:
        """Gather what is written down of a run, and find the part of it that counts."""
        records, is_open = outcome.records, schedule.dues_ns is not None
        sending = (outcome.begin_ns, outcome.end_ns)
        sent = Sent(begin_ns(records, is_open=is_open), records["end_ns"], records["cause"] == Cause.OK, sending, users)
        requests = self._prepared.requests if self._prepared is not None else ()
        return Taken(
            repetition=index,
            records=records,
            operations=[request.operation for request in requests],
            items=[request.items for request in requests],
            is_open=is_open,
            window_ns=find_window(sent, load).pair,
            digests=self._digest_replies(outcome, index),
        )

    def _digest_replies(self, outcome: LoadOutcome, index: int) -> Digests:
        """Look at the replies that were kept; a good one that is not what was asked for is told so here. What a task
        scores is written down, failures too."""
        digests = Digests()
        if self._prepared is None or self._prepared.keeps is Keeps.NOTHING:
            return digests
        requests, driver = self._prepared.requests, self.chosen.driver
        which, causes = outcome.records["request"], outcome.records["cause"]
        is_scored = isinstance(self.chosen.task, ScoresAnswers)
        kept = AnswerKeeper(self._asked, index) if is_scored else None
        for row, reply in outcome.replies():
            if causes[row] == Cause.OK:
                digest = driver.digest(requests[int(which[row]) % len(requests)], reply)
                digests.add(row, digest)
                if kept is not None:
                    kept.add(int(which[row]), digest)
        if kept is not None:
            append_answers(self.folder.path, kept.close(which.tolist()))
        return digests

    def finish(self, *, clean_up: bool = True) -> str:
        """Remove what was made at the endpoint; return what could not be. A server that is started anew for each run
        takes it along, so nothing is to `clean_up` there."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        if not clean_up or not self.sends:
            return ""
        try:
            self.chosen.driver.finish()
        except (PronyError, OSError) as exc:
            return f"the test data at the endpoint could not be removed: {exc}"
        return ""


def _send_load(
    ground: LoadPlan, beside: LoadTelemetry, seen: SeenLoad, start_at: Callable[[], int]
) -> tuple[LoadOutcome, Failure | None]:
    """Send a load; return what became of every request, and why it ended before its time where it did."""
    failure = None
    beside.begin()
    try:
        outcome = generate(ground, on_tick=_ticking(beside, seen), stop_asked=seen.stop_asked, start_at=start_at)
    except LostClientError as exc:
        outcome, failure = exc.rest, failure_of(exc, phase="load")
    beside.end()
    return outcome, failure


def _while_all_sent(outcome: LoadOutcome, load: Load) -> LoadOutcome:
    """End the part that may count when the first user is done: then fewer users load the service than were asked for.

    Where everything counts, as of one request of each user, it ends with the last."""
    if outcome.full_until_ns is None or load.warmup == "none":
        return outcome
    return replace(outcome, end_ns=min(outcome.full_until_ns, outcome.end_ns))


def _repetition(
    outcome: LoadOutcome, side: ClientSide, index: int, started_at: datetime, *, stopped: bool
) -> Repetition:
    cpu_ns = round(sum(one.cpu_s for one in outcome.clients) * 1e9)
    count = int(outcome.records["index"].size)
    phase = Phase(begin_ns=outcome.begin_ns, end_ns=outcome.end_ns, cpu_ns=cpu_ns, count=count)
    return Repetition(
        index=index,
        state="cancelled" if stopped else "ok",
        started_at=started_at,
        phases={"measure": phase},
        client=side,
        stopped_by="stop" if stopped else None,
    )


def _import_polars() -> None:
    """Import polars with an allocator that gives back what is freed, by itself it keeps that for ten seconds, and with
    one thread: it writes and reads columns here, and every thread has room of its own.

    It reads its settings once. They do not stay, for a service that is started later may have the same ones."""
    wanted = {"_RJEM_MALLOC_CONF": "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0", "POLARS_MAX_THREADS": "1"}
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        import polars  # noqa: F401
    finally:
        for name in missing:
            del os.environ[name]


def _keep_no_arrays() -> None:
    """Have every large array be given back the moment it is freed: glibc by itself learns to keep them, and then keeps
    the room of all that were ever alive together."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def _error_statuses(outcome: LoadOutcome) -> tuple[int, ...]:
    """Return the statuses with which the service said no, each once."""
    records = outcome.records
    return tuple(int(one) for one in np.unique(records["status"][records["cause"] == Cause.STATUS]))


def check_answers(repetition: Repetition, statuses: Sequence[int] = ()) -> None:
    """Refuse a run in which nothing at all was answered well: there is no latency of it, and another would say the
    same. `statuses` are those with which the service said no."""
    causes = repetition.client.causes if repetition.client is not None else {}
    if causes and not causes.get("ok") and repetition.state == "ok":
        words = {"status": " ".join(["status", " or ".join(map(str, statuses[:3]))]).strip()}
        told = ", ".join(f"{count:,} {words.get(name, name)}" for name, count in causes.items())
        hint = _ALL_FAILED_HINTS.get(max(causes, key=lambda name: causes[name]), "check that the endpoint answers")
        # The table counts what is measured, so it has fewer.
        raise SutError(f"no request succeeded, warm-up included: {told}", hint=hint, code="all_failed")


def _ticking(beside: LoadTelemetry, seen: SeenLoad) -> Callable[[LiveFigures], None]:
    last = [0.0]

    def tick(live: LiveFigures) -> None:
        beside.tick()
        if time.monotonic() - last[0] >= 0.25:
            last[0] = time.monotonic()
            seen.on_live(
                Shown(
                    elapsed_s=live.elapsed_s,
                    left_s=live.left_s,
                    sent=live.sent,
                    done=live.done,
                    failed=live.failed,
                    in_flight=live.in_flight,
                    rate_per_s=live.rate,
                    p50_ms=live.p50_ms_last,
                    p99_ms=live.p99_ms_last,
                )
            )

    return tick
