"""An agent's life against a small server that cuts, delays and refuses: every lease ends once, and nothing is left."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from lanes import only_slowly
from prony.agent import agent as module
from prony.agent import capabilities
from prony.agent.agent import AgentProcess
from prony.agent.identity import Identity, Slot
from prony.agent.logs import AgentLog
from prony.agent.server_client import ServerClient
from prony.agent.settings import AgentSettings
from prony.agent.spool import Spool
from prony.client.wire import delays
from prony.errors import AccessError, ConflictError, StoreError
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.recipe import Limits, Measure
from prony.model.result import Result, ResultState
from prony.ports.models import ModelPolicy
from prony.store.home import Home
from servers.process import commands

from .small_server import CUT, DROP, Fault, SmallServer, lines_of, small_server

Model = Callable[[str], Path]
Act = Callable[[AgentProcess], Coroutine[Any, Any, None]]
OPEN = ModelPolicy()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, and no engines started: what they can do is told elsewhere."""
    monkeypatch.setattr(capabilities, "inspect_engines", lambda _: [])
    for part in ("agent", "uploader"):
        monkeypatch.setattr(f"prony.agent.{part}.delays", lambda first, most: delays(first / 100, most / 100))


class Life:
    """One life of an agent's process, as far as one process can have several."""

    def __init__(self, home: Home, slot: Slot, server: SmallServer, said: io.StringIO) -> None:
        self.home, self.slot, self.server, self.said = home, slot, server, said
        self.given: str | None = None
        self.settings = AgentSettings(models=OPEN, least_free_bytes=1)

    def __call__(self, act: Act, **changes: Any) -> None:
        """Live until `act` has returned and the agent has left; a fault of either is raised."""
        asyncio.run(self._live(act, changes))

    async def _live(self, act: Act, changes: dict[str, Any]) -> None:
        from dataclasses import replace

        log = AgentLog(level="debug", form="json", out=self.said)
        async with ServerClient(self.server.url, answer_s=60.0) as link, asyncio.timeout(240):
            settings = replace(self.settings, **changes)
            agent = AgentProcess(self.slot, self.home, link, settings, given=self.given, log=log)
            living = asyncio.create_task(agent.run())
            acting = asyncio.create_task(act(agent))
            await asyncio.wait({living, acting}, return_when=asyncio.FIRST_COMPLETED)
            if not living.done():
                await acting
                agent.ask_to_stop()
            acting.cancel()
            await living

    @property
    def lines(self) -> list[dict[str, Any]]:
        return lines_of(self.said.getvalue())


@pytest.fixture
def life(home: Home, slot: Slot, server: SmallServer, said: io.StringIO) -> Life:
    return Life(home, slot, server, said)


@pytest.fixture
def lease(faulty: Model, tmp_path: Path) -> Callable[..., Lease]:
    def make(number: int = 1, plan: str = "check:fine", repeats: int = 1) -> Lease:
        model = tmp_path / f"model-{number}.faulty"
        model.write_text(plan)
        job = Job(
            id=f"e1-{number:03d}",
            experiment_id="e1",
            name="small",
            workload=ModelWorkload(kind="model", model=str(model), engine="faulty"),
            measure=Measure(runs=5, warmup=1, repeats=repeats, check=False),
            limits=Limits(timeout="60s"),
        )
        return Lease(id=f"lease-{number}", job=job, attempt=1, ttl_s=6)

    return make


MakeLease = Callable[..., Lease]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def result_in(content: bytes) -> Result:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile("result.json")
        assert file is not None
        return Result.read_json(file.read())


def states(server: SmallServer) -> dict[str, ResultState]:
    return {lease_id: result_in(content).state for lease_id, content in server.results.items()}


def results(server: SmallServer, count: int) -> Act:
    async def act(_: AgentProcess) -> None:
        await until(lambda: len(server.results) >= count)

    return act


def measuring(server: SmallServer, lease_id: str) -> Callable[[], bool]:
    """Has the first repetition of this lease ended?"""
    return lambda: any(
        event.kind == "repetition" and event.state
        for progress in list(server.progress[lease_id])
        for event in progress.events
    )


def runners(home: Home) -> list[psutil.Process]:
    everyone = commands(psutil.process_iter())
    return [process for process, command in everyone if any(str(home.root) in word for word in command)]


# Work


def test_job_after_job_is_run_and_its_result_handed_in(
    life: Life, server: SmallServer, lease: MakeLease, home: Home
) -> None:
    server.leases = [lease(1), lease(2)]
    life(results(server, 2))
    assert states(server) == {"lease-1": ResultState.COMPLETE, "lease-2": ResultState.COMPLETE}
    assert len(server.enrolments) == 1
    assert Spool(life.slot.spool).waiting() == []
    assert Spool(life.slot.spool).find_unfinished() == []
    kinds = [event.kind for one in server.progress["lease-1"] for event in one.events]
    assert kinds[0] == "prepare"
    assert kinds[-1] == "finished"
    assert server.drained
    assert runners(home) == []


def test_every_line_about_a_job_has_its_ids(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1)]
    life(results(server, 1))
    about = [line for line in life.lines if line["event"] in ("job started", "job ended", "result uploaded")]
    assert [line["event"] for line in about] == ["job started", "job ended", "result uploaded"]
    assert {(line["job_id"], line["experiment_id"], line["attempt"]) for line in about} == {("e1-001", "e1", 1)}


@pytest.mark.parametrize("fault", [CUT, *only_slowly(DROP, 503)])
@pytest.mark.parametrize("operation", ["POST agents", "POST leases", "PUT leases/result", "POST agents/heartbeat"])
def test_a_call_that_is_lost_loses_no_job_and_doubles_none(
    life: Life, server: SmallServer, lease: MakeLease, operation: str, fault: Fault
) -> None:
    server.faults[operation] = [fault]
    server.leases = [lease(1)]
    life(results(server, 1))
    assert states(server) == {"lease-1": ResultState.COMPLETE}
    assert server.returned == {}
    assert sum(line["event"] == "job started" for line in life.lines) == 1
    assert len({(one.id, one.incarnation) for one in server.enrolments}) == 1


def test_a_cancelled_job_is_stopped_and_what_it_measured_is_sent(
    life: Life, server: SmallServer, lease: MakeLease, home: Home
) -> None:
    server.leases = [lease(1, repeats=1000)]

    async def cancel(_: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))
        server.cancelled.add("lease-1")
        await until(lambda: bool(server.results))

    life(cancel)
    result = result_in(server.results["lease-1"])
    assert result.state is ResultState.PARTIAL
    assert result.repetitions
    assert runners(home) == []


def test_a_hung_engine_is_stopped_too(life: Life, server: SmallServer, lease: MakeLease, home: Home) -> None:
    server.leases = [lease(1, plan="first:hang")]

    async def cancel(_: AgentProcess) -> None:
        await until(lambda: any("phase load" in one.log for one in list(server.progress["lease-1"])))
        server.cancelled.add("lease-1")
        await until(lambda: bool(server.results))

    life(cancel)
    assert states(server) == {"lease-1": ResultState.PARTIAL}
    assert runners(home) == []


def test_a_runner_that_is_killed_is_reported_so_that_the_server_tries_again(
    life: Life, server: SmallServer, lease: MakeLease, home: Home
) -> None:
    server.leases = [lease(1, repeats=1000)]

    async def kill(_: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))
        for process in runners(home):
            process.kill()
        await until(lambda: bool(server.results))

    life(kill)
    result = result_in(server.results["lease-1"])
    assert result.state is ResultState.FAILED
    assert result.failure is not None
    assert (result.failure.code, result.failure.whose) == ("runner_lost", "prony")


def test_a_lease_that_was_lost_is_dropped_unless_it_is_complete(
    life: Life, server: SmallServer, lease: MakeLease
) -> None:
    server.leases = [lease(1, repeats=1000), lease(2)]

    async def lose(_: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))
        server.faults["POST leases/progress"] = [404]
        server.lent.clear()
        await until(lambda: bool(server.results))

    life(lose)
    assert states(server) == {"lease-2": ResultState.COMPLETE}
    assert server.returned == {}


def test_a_kind_that_is_not_allowed_is_not_run(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1)]
    life(results(server, 1), kinds=("hardware",))
    failure = result_in(server.results["lease-1"]).failure
    assert failure is not None
    assert (failure.code, failure.whose) == ("kind_refused", "capacity")
    assert server.progress["lease-1"] == []


@pytest.mark.parametrize(("kinds", "is_refused"), [(("llm",), True), (("llm", "script"), False)])
def test_a_command_is_not_run_where_the_owner_allows_none(
    life: Life, server: SmallServer, lease: MakeLease, kinds: tuple[str, ...], is_refused: bool
) -> None:
    """The server may be too old to know that the job holds one."""
    work = {"kind": "llm", "model": "zoo:none", "engine": "null", "task": "qa", "prompts": {"scorer": "touch x"}}
    made = lease(1)
    server.leases = [made.model_copy(update={"job": Job(**made.job.model_dump(exclude={"workload"}), workload=work)})]
    life(results(server, 1), kinds=kinds)
    failure = result_in(server.results["lease-1"]).failure
    assert failure is not None
    assert (failure.code == "kind_refused") is is_refused
    assert not is_refused or "--kinds` with script or service" in str(failure.hint)


def test_the_policy_reaches_the_runner(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1)]
    life(results(server, 1), models=ModelPolicy(schemes=("zoo",)))
    failure = result_in(server.results["lease-1"]).failure
    assert failure is not None
    assert failure.code == "model_refused"


def test_the_server_is_told_when_a_model_is_here_now(
    life: Life, server: SmallServer, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.agent.enrolment._REFRESH_S", 0.0)
    server.faults["PUT agents/capabilities"] = [DROP]  # told again with the next look

    async def fetch(_: AgentProcess) -> None:
        await until(lambda: bool(server.requests))
        (home.cache / "zoo").mkdir()
        (home.cache / "zoo" / "tiny-1.onnx").write_bytes(b"x")
        await until(lambda: server.calls.count("PUT agents/capabilities") == 2)
        seen = len(server.requests)
        await until(lambda: len(server.requests) > seen + 2)

    life(fetch)
    assert "model" not in server.enrolments[0].capabilities.facts
    assert server.calls.count("PUT agents/capabilities") == 2


# Leaving


def test_an_idle_agent_leaves_at_once(life: Life, server: SmallServer) -> None:
    async def wait(_: AgentProcess) -> None:
        await until(lambda: bool(server.requests))

    life(wait)
    assert server.drained
    assert server.returned == {}


def test_a_job_that_ends_in_time_is_finished_before_leaving(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1, plan="load:slow"), lease(2)]

    async def stop(_: AgentProcess) -> None:
        await until(lambda: bool(server.progress["lease-1"]))

    life(stop)
    assert states(server) == {"lease-1": ResultState.COMPLETE}
    assert [one.id for one in server.leases] == ["lease-2"]
    assert server.returned == {}


def test_a_job_that_does_not_is_handed_back(life: Life, server: SmallServer, lease: MakeLease, home: Home) -> None:
    server.leases = [lease(1, repeats=1000)]

    async def stop(_: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))

    life(stop, drain_timeout_s=0.05)
    assert server.results == {}
    assert server.returned == {"lease-1": "the agent is being stopped"}
    assert runners(home) == []
    assert Spool(life.slot.spool).find_unfinished() == []


@pytest.mark.parametrize("operation", ["DELETE leases", "POST agents/drain"])
def test_leaving_is_told_although_the_first_word_is_lost(
    life: Life, server: SmallServer, lease: MakeLease, operation: str
) -> None:
    server.leases = [lease(1, repeats=1000)]
    server.faults[operation] = [DROP, CUT]

    async def stop(_: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))

    life(stop, drain_timeout_s=0.05)
    assert server.drained
    assert server.returned == {"lease-1": "the agent is being stopped"}


def test_a_second_signal_hands_it_back_at_once(life: Life, server: SmallServer, lease: MakeLease, home: Home) -> None:
    server.leases = [lease(1, repeats=1000)]

    async def stop(agent: AgentProcess) -> None:
        await until(measuring(server, "lease-1"))
        agent.ask_to_stop()

    life(stop, drain_timeout_s=3600)
    assert server.returned == {"lease-1": "the agent is being stopped"}
    assert runners(home) == []


def test_a_lease_whose_answer_was_lost_in_the_last_instant_is_handed_back(
    life: Life, server: SmallServer, lease: MakeLease
) -> None:
    async def stop(agent: AgentProcess) -> None:
        await until(lambda: bool(server.requests))
        server.lent["lease-1"] = lease(1)  # it was lent while the agent gave up its long poll
        agent.ask_to_stop()
        await until(lambda: bool(server.returned))

    life(stop)
    assert set(server.returned) == {"lease-1"}
    assert server.results == {}


# A server that is away


def test_a_job_goes_on_while_the_server_is_away(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1, plan="load:slow", repeats=3)]
    port = server.server_address[1]
    again: list[SmallServer] = []

    async def restart(_: AgentProcess) -> None:
        await until(lambda: bool(server.progress["lease-1"]))
        await asyncio.to_thread(server.die)
        await until(lambda: bool(Spool(life.slot.spool).waiting()))
        with small_server(int(port)) as back:
            again.append(back)
            await until(lambda: bool(back.results))
            await until(lambda: any(line["event"] == "the server is back" for line in life.lines))

    life(restart)
    assert states(again[0]) == {"lease-1": ResultState.COMPLETE}


def test_an_agent_that_starts_first_waits_for_its_server(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.faults["POST agents"] = [503, DROP, 500, 429, DROP]
    server.leases = [lease(1)]
    life(results(server, 1))
    assert len(server.enrolments) == 1


@pytest.mark.parametrize(
    ("operation", "part"),
    [
        ("POST agents", "agent"),
        ("POST leases", "agent"),
        ("POST leases/progress", "reporter"),
        ("POST agents/heartbeat", "heartbeat"),
    ],
)
def test_a_server_whose_disk_is_full_is_asked_once_a_pause_and_pauses_grow(
    life: Life, server: SmallServer, lease: MakeLease, operation: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def note(first_s: float, most_s: float) -> Iterator[float]:
        for pause_s in delays(first_s, most_s):
            taken.append(pause_s)
            yield pause_s / 100

    monkeypatch.setattr(f"prony.agent.{part}.delays", note)
    monkeypatch.setattr("prony.agent.heartbeat._MOST_S", 0.02)
    server.codes[507] = "disk_full"
    server.faults[operation] = [507] * 6
    server.leases = [lease(1, repeats=1000)]

    async def outlast(_: AgentProcess) -> None:
        await until(lambda: not server.faults[operation])
        await until(measuring(server, "lease-1"))
        server.cancelled.add("lease-1")
        await until(lambda: bool(server.results))

    life(outlast)
    assert len(taken) == 6
    assert taken[5] > 8 * taken[0]  # doubled five times, scattered by half
    assert states(server) == {"lease-1": ResultState.PARTIAL}


@pytest.mark.parametrize("status", [401, 403, 422])
def test_a_server_that_does_not_want_it_is_told_to_its_owner(life: Life, server: SmallServer, status: int) -> None:
    server.faults["POST agents"] = [status]
    server.codes = {401: "unauthorized", 403: "forbidden"}
    with pytest.raises(AccessError if status < 404 else Exception, match="refused on order"):
        life(results(server, 1))


def test_an_agent_that_its_server_forgot_introduces_itself_again(
    life: Life, server: SmallServer, lease: MakeLease
) -> None:
    server.faults["POST leases"] = [404, 409]
    server.leases = [lease(1)]
    life(results(server, 1))
    assert len(server.enrolments) == 3
    assert len({one.id for one in server.enrolments}) == 1
    assert states(server) == {"lease-1": ResultState.COMPLETE}


def test_two_processes_that_say_they_are_one_agent_do_not_fight_for_ever(life: Life, server: SmallServer) -> None:
    server.faults["POST leases"] = [409] * 100
    with pytest.raises(ConflictError, match="another process uses the identity of agent"):
        life(results(server, 1))
    assert len(server.enrolments) <= module._MOST_RIVALS + 1


# Identity


def test_a_one_time_token_becomes_the_agents_own(life: Life, server: SmallServer) -> None:
    server.own_token = "own-secret"
    life.given = "once"

    async def wait(_: AgentProcess) -> None:
        seen = len(server.requests)
        await until(lambda: len(server.requests) > seen)

    life(wait)
    assert server.tokens[0] == "once"
    assert set(server.tokens[1:]) == {"own-secret"}
    identity = life.slot.identity()
    assert identity == Identity(server=server.url, id=server.enrolments[0].id, token="own-secret")
    before = len(server.tokens)
    server.drained, server.own_token = False, None
    life(wait)
    assert set(server.tokens[before:]) == {"own-secret"}
    assert life.slot.identity() == identity
    assert server.enrolments[0].incarnation != server.enrolments[-1].incarnation


def test_a_token_that_was_revoked_is_replaced_by_one_that_is_given(life: Life, server: SmallServer) -> None:
    life.slot.keep(Identity(server=server.url, id="a-1", token="revoked"))
    server.faults["POST agents"] = [401]
    server.own_token = "fresh"
    life.given = "once"

    async def wait(_: AgentProcess) -> None:
        await until(lambda: bool(server.requests))

    life(wait)
    assert server.tokens[:3] == ["revoked", "once", "fresh"]


# This disk


def test_nothing_is_asked_for_while_there_is_no_room(life: Life, server: SmallServer, lease: MakeLease) -> None:
    server.leases = [lease(1)]

    async def wait(_: AgentProcess) -> None:
        await until(lambda: sum(line["event"].startswith("not enough disk space") for line in life.lines) >= 3)
        await until(lambda: any(beat.disk is not None for beat in server.beats))  # it lives, and says why

    life(wait, least_free_bytes=2**62)
    # The one request is that of leaving, which asks for nothing new.
    assert [one.wait_s for one in server.requests] == [0]
    shortage = next(beat.disk for beat in server.beats if beat.disk is not None)
    assert (shortage.path, shortage.needed_bytes) == (str(life.slot.spool), 2**62)


def test_the_server_is_told_when_there_is_room_again(life: Life, server: SmallServer) -> None:
    async def wait(agent: AgentProcess) -> None:
        await until(lambda: any(beat.disk is not None for beat in server.beats))
        agent.spool.least_free_bytes = 0
        await until(lambda: bool(server.requests))
        assert server.beats[-1].disk is None

    life(wait, least_free_bytes=2**62)


def test_a_full_disk_hands_the_job_back_with_the_reason_and_sends_what_was_measured_later(
    life: Life, server: SmallServer, lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.leases = [lease(1)]
    keep, fails = Spool.keep, [True]

    def full_once(self: Spool, *args: Any, **options: Any) -> Any:
        if fails.pop() if fails else False:
            raise StoreError("no room: the disk is full", code="disk_full")
        return keep(self, *args, **options)

    monkeypatch.setattr(Spool, "keep", full_once)
    life(results(server, 1))
    assert "the disk is full" in server.returned["lease-1"]
    assert states(server) == {"lease-1": ResultState.COMPLETE}
    assert any(line["level"] == "error" and "disk is full" in line["reason"] for line in life.lines if "reason" in line)


def test_results_of_an_earlier_life_are_sent_before_the_agent_introduces_itself(
    life: Life, server: SmallServer, lease: MakeLease
) -> None:
    life.slot.keep(Identity(server=server.url, id="a-1"))
    spool = Spool(life.slot.spool)
    work = spool.begin(lease(1))
    work.folder.mkdir()
    (work.folder / "result.json").write_text("kept")
    spool.keep(work)

    async def wait(_: AgentProcess) -> None:
        await until(lambda: bool(server.requests))

    life(wait)
    assert list(server.results) == ["lease-1"]
    assert server.calls.index("PUT leases/result") < server.calls.index("POST agents")


def test_results_of_an_earlier_life_do_not_wait_until_the_agent_is_enrolled(
    life: Life, server: SmallServer, lease: MakeLease
) -> None:
    life.slot.keep(Identity(server=server.url, id="a-1"))
    spool = Spool(life.slot.spool)
    for number in (1, 2):
        work = spool.begin(lease(number))
        work.folder.mkdir()
        (work.folder / "result.json").write_text("kept")
        spool.keep(work)
    server.faults["PUT leases/result"] = [503, DROP]
    server.faults["POST agents"] = [503] * 10_000
    life(results(server, 2))
    assert set(server.results) == {"lease-1", "lease-2"}
    assert server.enrolments == []
