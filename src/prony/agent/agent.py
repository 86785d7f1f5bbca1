"""Run an agent: take up what an earlier one left, enrol, work lease after lease, and leave in order when stopped.

While it runs, it holds its slot, handles signals and serves its metrics.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass

from prony.agent.attempt import address_towards
from prony.agent.capabilities import CapabilityScanner
from prony.agent.enrolment import AgentEnrolment
from prony.agent.heartbeat import Heartbeats
from prony.agent.identity import Slot, hold_slot
from prony.agent.logs import AgentLog
from prony.agent.metrics import serve_metrics
from prony.agent.readings import DeviceReader
from prony.agent.server_client import Refused, ServerClient, ask_again_for
from prony.agent.settings import DEFAULT_SERVER, AgentSettings
from prony.agent.spool import LEAST_FREE_BYTES, Spool
from prony.agent.stopping import cancel_tasks
from prony.agent.target_scanner import TargetScanner
from prony.agent.target_worker import TargetWorker
from prony.agent.worker import LEAVING, AgentContext, LeaseWorker, Worker
from prony.client.wire import base_of, delays
from prony.errors import ConflictError, PronyError, StoreError, TransportError
from prony.model.agent import AgentState, DiskShortage, Enrolled, Heartbeat, HeartbeatAnswer
from prony.model.lease import Lease, LeaseRequest
from prony.model.loopback import is_loopback, is_loopback_url
from prony.ports import plugins
from prony.ports.agent_link import AgentLink, ServerLink
from prony.runner.process_group import stop_signals
from prony.store.home import Home

_WAIT_S = 30.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_LEAVE_S = 10.0
_HAND_BACK_S = 5.0
_TROUBLE_S = 5.0
# So often in a row another process may take this agent's place before this one gives up.
_MOST_RIVALS = 5
_MOST_BEATEN = 1000


class AgentProcess:
    """One process that offers this device to one server, from `run` until it is asked to stop."""

    def __init__(
        self, slot: Slot, home: Home, link: ServerLink, settings: AgentSettings, *, given: str | None, log: AgentLog
    ) -> None:
        self.link = link
        self.log = log
        self.spool = Spool(slot.spool, least_free_bytes=settings.least_free_bytes or LEAST_FREE_BYTES)
        self.context = context = AgentContext(home, link, settings, self.spool, log=log)
        self.worker: LeaseWorker
        abilities: CapabilityScanner | TargetScanner
        if settings.target is None:
            self.worker = Worker(context)
            abilities = CapabilityScanner(home, settings)
        else:
            self.worker = TargetWorker(context, settings.target)
            abilities = TargetScanner(slot.path, home, settings, settings.target, log)
        self.metrics = context.metrics
        self.stopping = context.stopping
        self.uploader = context.uploader
        self.condition = context.condition
        self.membership = AgentEnrolment(slot, link, abilities, settings, given=given, log=log)
        self.pulse = Heartbeats(
            link, say=self._heartbeat, hear=self._hear, dismissed=self._enrol_again, metrics=self.metrics, log=log
        )
        # The device of a stand-in runs no jobs: how it does tells nothing.
        self._reader = DeviceReader() if settings.target is None else None
        self._is_polling = False
        self._must_enroll = False
        self._shortage: DiskShortage | None = None
        self._rivals = 0
        self._pauses = delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def ask_to_stop(self) -> None:
        """Drain; asked a second time, hand back what runs at once."""
        self.log.info("stopping immediately" if self.stopping.is_asked else "draining")
        self.stopping.ask()

    async def run(self) -> None:
        """Live. Returns when it was asked to stop and has; raises where the server does not want this agent."""
        await self._take_up()
        # What waits here, or is elsewhere, need not wait until this life is known.
        beside = {asyncio.create_task(self.uploader.run()), asyncio.create_task(self.worker.run())}
        if self._reader is not None:
            beside.add(asyncio.create_task(self._reader.run()))
        try:
            if await self._enrol():
                await self._serve(beside)
            await self._leave()
        finally:
            self.membership.close()
            await cancel_tasks(*beside)

    async def _serve(self, beside: set[asyncio.Task[None]]) -> None:
        """Work until asked to stop."""
        working = asyncio.create_task(self._work())
        beating = asyncio.create_task(self.pulse.run(lambda: self.membership.id, lambda: self.membership.ttl_s))
        announcing = asyncio.create_task(self._announce())
        try:
            done, _ = await asyncio.wait({working, beating, *beside}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # the others end by a fault alone, and must not end in silence
            await announcing
            await self._give_back_unheard()
        finally:
            await cancel_tasks(working, beating, announcing)

    # The beginning

    async def _take_up(self) -> None:
        """Make late results of what an earlier life left, and send them while its leases may still hold."""
        await self.worker.take_up()
        await self.uploader.load()
        if self.uploader.unsent and self.membership.is_known:
            self.log.info("unsent results from an earlier start", results=len(self.uploader.unsent))
            await self.stopping.unless_asked(self.uploader.send_waiting(at_once=True))

    async def _enrol(self) -> bool:
        """Enrol, however long the server is away; False where the end was asked for before."""
        await self.stopping.unless_asked(self.membership.look())
        pauses = delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while not self.stopping.is_asked:
            try:
                enrolled = await self.stopping.unless_asked(self.membership.enroll(self.worker.outliving))
            except TransportError as exc:
                self.pulse.lost(exc.message)
            except Refused as exc:
                if exc.is_final or exc.status in (401, 403):
                    raise exc.error from exc
                self.log.warning("not enrolled yet", reason=exc.error.message, status=exc.status)
            else:
                if enrolled is not None:
                    self._log_state(enrolled.agent.state, enrolled.agent.reason)
                    return True
            await self.stopping.pause(next(pauses))
        return False

    def _log_state(self, state: AgentState, reason: str) -> None:
        me = self.membership
        self.pulse.note_contact()
        self.worker.note_enrolled()
        self.log.info("enrolled", server=self.link.base, agent_id=me.id, name=me.name, incarnation=me.incarnation)
        if state is AgentState.FAULTY:
            hint = f"after the repair: prony agents reset {me.id}"
            self.log.alarm("the server sends this agent no jobs: it is marked faulty", reason=reason, hint=hint)

    # Lease after lease

    async def _work(self) -> None:
        lease: Lease | None = None
        troubles = delays(_TROUBLE_S, _LONGEST_PAUSE_S)
        while not self.stopping.is_asked:
            lease = lease or await self._next()
            if lease is None or self.stopping.is_asked:
                continue
            try:
                lease = await self.worker.carry_out(lease)
                self._rivals, troubles = 0, delays(_TROUBLE_S, _LONGEST_PAUSE_S)
            except PronyError:  # told already, and the job is handed back: perhaps to this very agent
                lease = None
                await self.stopping.pause(next(troubles))
        if lease is not None:
            await self.context.hand_back(lease.id, LEAVING)

    async def _next(self) -> Lease | None:
        """Wait for a lease; None when there was none yet.

        What can be sent is sent first: an upload beside a measurement would disturb it.
        """
        await self.stopping.unless_asked(self.uploader.settled.wait())
        if not await self._has_room():
            return None
        if self.worker.has_leftovers:
            await self.worker.take_up()
            await self.uploader.load()
        if self._must_enroll:
            self._must_enroll = False
            if not await self._enrol():
                return None
        await self.stopping.unless_asked(self.membership.refresh())
        return None if self.stopping.is_asked else await self._poll()

    async def _has_room(self) -> bool:
        """Is there room for a job? While there is none, heartbeats say so and no job is asked for."""
        had_room = self._shortage is None
        self._shortage = await asyncio.to_thread(self._find_shortage)
        if self._shortage is None:
            if not had_room:
                self.log.info("enough disk space for jobs again")
                self._pauses = delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
                await self.pulse.beat(self.membership.id)  # the server lends nothing until it knows
            return True
        self.log.alarm(
            "not enough disk space for another job, waiting",
            reason=str(self._shortage),
            hint="free some space on this disk",
        )
        await self.stopping.pause(next(self._pauses))
        return False

    def _find_shortage(self) -> DiskShortage | None:
        try:
            return self.spool.shortage()
        except StoreError:  # so full, or so broken, that not even a folder can be made
            return DiskShortage(path=str(self.spool.root), free_bytes=0, needed_bytes=self.spool.least_free_bytes)

    async def _poll(self) -> Lease | None:
        self._is_polling = True
        pause_s = 0.0
        try:
            asking = self.link.lease(self._request(min(_WAIT_S, self.membership.ttl_s)))
            lease = await self.stopping.unless_asked(asking)
        except TransportError as exc:
            self.pulse.lost(exc.message)
        except Refused as exc:
            self._handle_refusal(exc)
            pause_s = exc.retry_after_s or 0.0
        else:
            self.pulse.note_contact()
            self._pauses = delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
            self._is_polling = False
            if lease is None and not self.stopping.is_asked:
                await self.pulse.beat(self.membership.id)  # a poll that brings nothing does not say why
            return lease
        finally:
            self._is_polling = False
        await self.stopping.pause(max(pause_s, next(self._pauses)))
        return None

    def _request(self, wait_s: float) -> LeaseRequest:
        me = self.membership
        return LeaseRequest(
            agent_id=me.id,
            incarnation=me.incarnation,
            holding=self.worker.open_lease_ids,
            wait_s=wait_s,
            readings=self._readings(),
        )

    def _readings(self) -> dict[str, float]:
        return {} if self._reader is None else dict(self._reader.latest)

    def _handle_refusal(self, refused: Refused) -> None:
        if refused.is_dismissal:
            self._enrol_again(refused)
        else:
            self.log.warning(
                "the server gave no job", reason=refused.error.message, hint=refused.error.hint, status=refused.status
            )

    # The end

    async def _announce(self) -> None:
        """Tell the server as soon as this agent is to stop, while its job may go on for a time."""
        await self.stopping.asked.wait()
        self.condition.to(AgentState.DRAINING)
        await self.membership.drain(_LEAVE_S)

    async def _give_back_unheard(self) -> None:
        """Give back what was given in the last instant, in the answer to a long poll that was given up."""
        with suppress(TransportError, Refused):
            lease = await ask_again_for(lambda: self.link.lease(self._request(0)), _HAND_BACK_S)
            if lease is not None:
                await self.context.hand_back(lease.id, LEAVING)

    async def _leave(self) -> None:
        """Send what can be sent in a short time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self.stopping.unless_hurried(self._wait_until_idle())
        if self.uploader.unsent:
            self.log.warning(
                "unsent results stay on this disk; the next start of the agent sends them",
                results=len(self.uploader.unsent),
            )
        self.log.info("stopped")

    async def _wait_until_idle(self) -> None:
        pauses = delays(0.1, 2.0)
        while self.uploader.unsent:
            if await self.uploader.send_waiting(at_once=True) is not None:
                await asyncio.sleep(next(pauses))

    # What the pulse tells and hears

    def _heartbeat(self) -> Heartbeat | None:
        self.worker.note_time()
        holding = self.worker.holding
        if self._is_polling and not holding:
            return None
        cleaning = self.condition.state is AgentState.CLEANUP
        return Heartbeat(
            incarnation=self.membership.incarnation,
            leases=holding[:_MOST_BEATEN],
            cleaning=cleaning,
            disk=self._shortage,
            readings=self._readings(),
        )

    def _hear(self, answer: HeartbeatAnswer) -> None:
        self.worker.cancel(answer.cancel)
        if answer.drain and not self.condition.is_draining:
            self.log.info("the server drained this agent: no new jobs until it is reset")
            self.condition.to(AgentState.DRAINING)
        elif not answer.drain and self.condition.is_draining and not self.stopping.is_asked:
            self.log.info("the server sends this agent jobs again")
            self.condition.to(AgentState.ACTIVE)
            if self.worker.is_busy:
                self.condition.to(AgentState.BUSY)

    def _enrol_again(self, refused: Refused) -> None:
        """The server knows this agent, or this life of it, no more: introduce it again, but not for ever."""
        if not self._must_enroll:
            self.log.warning("enrolling again", reason=refused.error.message)
            self._rivals += refused.status == 409
        self._must_enroll = True
        if self._rivals > _MOST_RIVALS:
            raise ConflictError(
                f"another process uses the identity of agent {self.membership.id}",
                hint="its home may be a copy: remove the folder `agents` in one of the two, and enrol that agent again",
                code="agent_replaced",
            )


@dataclass(frozen=True)
class AgentOwner:
    """Where the agent is to live and whom it is to serve. `server` is None where the slot's own is meant."""

    home: Home
    settings: AgentSettings
    server: str | None = None
    token: str | None = None

    @property
    def base(self) -> str | None:
        if self.settings.other_server is not None:
            return self.settings.other_server.base
        return None if self.server is None else base_of(self.server)

    def server_of(self, slot: Slot) -> str:
        """Return the server that was named, or that the slot belongs to, or the one on this machine."""
        known = slot.identity()
        server = self.base or (known.server if known else DEFAULT_SERVER)
        name, _, url = server.partition("+")
        if self.settings.other_server is None and url and name in plugins.find_plugins(plugins.AGENT_LINKS):
            other: AgentLink = plugins.load_plugin(plugins.AGENT_LINKS, name)()
            raise ConflictError(f"the agent {slot.name} serves {other.title}", hint=f"{other.option} {url}")
        return server


def _connect_slot(owner: AgentOwner, slot: Slot, log: AgentLog) -> AbstractAsyncContextManager[ServerLink]:
    """Return the link to whom the slot serves."""
    if owner.settings.other_server is not None:
        return owner.settings.other_server.connect(slot, log)
    return ServerClient(owner.server_of(slot))


def live(owner: AgentOwner, log: AgentLog) -> None:
    """Be an agent until SIGTERM or SIGINT."""
    with hold_slot(owner.home, server=owner.base, name=owner.settings.name) as slot:
        asyncio.run(_live(owner, slot, log.bound(slot=slot.name)))


async def _live(owner: AgentOwner, slot: Slot, log: AgentLog) -> None:
    settings = owner.settings
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(_connect_slot(owner, slot, log))
        agent = AgentProcess(slot, owner.home, link, settings, given=owner.token, log=log)
        stack.push_async_callback(asyncio.to_thread, agent.context.tracer.close)
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            stack.callback(_on_signal(loop, number, agent.ask_to_stop))
        if settings.metrics_port is not None:
            serving = serve_metrics(agent.metrics, settings.metrics_host, settings.metrics_port)
            port = await stack.enter_async_context(serving)
            log.info("metrics", url=f"http://{settings.metrics_host}:{port}/metrics")
            found = await asyncio.to_thread(metrics_address, settings.metrics_host, port, link.base)
            agent.membership.metrics_address = found
        log.info("agent started", server=link.base, home=str(owner.home.root))
        await agent.run()


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, act: Callable[[], None]) -> Callable[[], object]:
    """Act when a signal comes; return how that is undone. The event loop of Windows hears of no signals."""
    if sys.platform == "win32":
        before = signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))
        return lambda: signal.signal(number, before)
    loop.add_signal_handler(number, act)
    return lambda: loop.remove_signal_handler(number)


def metrics_address(host: str, port: int, server: str) -> str:
    """Return where Prometheus finds the metrics that are served at a host of this machine; empty where it cannot.

    Prometheus is thought to be where the server is: what listens on the loop is found from this machine alone.
    """
    if is_loopback(host) and not is_loopback_url(server):
        return ""
    found = address_towards(server) if host in ("", "0.0.0.0", "::") else host
    if not found:
        return ""
    return f"[{found}]:{port}" if ":" in found else f"{found}:{port}"


def enroll(owner: AgentOwner, log: AgentLog) -> tuple[Slot, Enrolled]:
    """Enrol and write the identity down; return what the server answered. It is not waited for."""
    with hold_slot(owner.home, server=owner.base, name=owner.settings.name) as slot:
        return slot, asyncio.run(_enroll(owner, slot, log))


async def _enroll(owner: AgentOwner, slot: Slot, log: AgentLog) -> Enrolled:
    async with _connect_slot(owner, slot, log) as link:
        abilities = CapabilityScanner(owner.home, owner.settings)
        membership = AgentEnrolment(slot, link, abilities, owner.settings, given=owner.token, log=log)
        await membership.look()
        try:
            return await membership.enroll()
        except Refused as exc:
            raise exc.error from exc
