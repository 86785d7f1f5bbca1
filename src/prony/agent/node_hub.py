"""Where the nodes of one allocation meet: a TCP port on the first of them, found by a file in the folder they share.

Lines of JSON. A node says which one it is and asks questions with numbers; answers carry the same number. Besides, all
are told to stop where one failed or was lost: alone the others would wait for it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
from pydantic import ValidationError

from prony.agent.stopping import cancel_tasks
from prony.app.meetings import Meetings, add_lives
from prony.error_codes import SEE_LOG
from prony.errors import TransportError
from prony.model.base import Noun
from prony.model.event import Event, Live
from prony.model.gang import ClockReading, Meeting, Met
from prony.model.loopback import is_loopback
from prony.runner.folder import write_noun

_LONGEST_LINE = 2**26  # what many nodes say at one meeting
_CONNECT_S = 10.0
_FIND_S = 300.0  # a shared folder may show a file a minute late
_PAUSE_S = 0.1
_LEAVE_S = 10.0
EVERY_JOB = ""  # what a stop names where a node was lost


class HubAddress(Noun):
    """How the other nodes find the first one; the token keeps others of the cluster out."""

    hosts: tuple[str, ...]
    port: int
    token: str


class NodeHub:
    """The meeting place. It belongs to the event loop's thread."""

    def __init__(self, of: int, on_event: Callable[[Event], None]) -> None:
        self._of = of
        self._on_event = on_event
        self._token = secrets.token_hex(16)
        self._meetings = Meetings()
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._reached: dict[int, str] = {}
        self._joined = asyncio.Event()
        self._ended: dict[str, dict[int, bool]] = {}
        self._changed = asyncio.Condition()
        self._lives: dict[int, Live] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: set[int] = set()
        self._left: set[int] = set()

    async def open(self, file: Path) -> HubAddress:
        """Listen, and write down where, for nodes that see the same folder."""
        self._server = await asyncio.start_server(self._serve, host=None, port=0, limit=_LONGEST_LINE)
        port = next(one.getsockname()[1] for one in self._server.sockets)
        # With several families each has a port of its own; one that all use is written down.
        ports = {one.family: one.getsockname()[1] for one in self._server.sockets}
        address = HubAddress(hosts=tuple(_own_hosts()), port=ports.get(socket.AF_INET, port), token=self._token)
        write_noun(file, address)
        file.chmod(0o600)
        return address

    async def close(self) -> None:
        """Wait a while until all have left with their last answers, and listen no more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S), self._changed:
                await self._changed.wait_for(lambda: self._writers.keys() <= self._left)
        if self._server is not None:
            self._server.close()
        await cancel_tasks(*self._tasks)
        for writer in self._writers.values():
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one node for as long as it is there; one that goes without a word is lost."""
        try:
            hello = json.loads(await reader.readline())
            index, token = int(hello["index"]), str(hello["token"])
        except (ValueError, TypeError, KeyError, OSError):
            token = ""
        if not hmac.compare_digest(token, self._token):
            writer.close()
            return
        self._join(index, writer, str(hello.get("reached", "")))
        has_left = False
        with suppress(OSError, ValueError, KeyError):  # cut, or no line of ours
            while not has_left and (line := await reader.readline()):
                received_ns = time.perf_counter_ns()
                asked = json.loads(line)
                has_left = asked["ask"] == "bye"
                if not has_left:
                    self._start(self._answer(index, asked, received_ns))
        if not has_left:
            self._lost.add(index)
            self._stop_others({index}, EVERY_JOB)
        await self._note_gone(index)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _join(self, index: int, writer: asyncio.StreamWriter, reached: str) -> None:
        self._writers[index] = writer
        self._reached[index] = reached
        if len(self._writers) == self._of:
            self._joined.set()

    async def _note_gone(self, index: int) -> None:
        self._left.add(index)
        async with self._changed:
            self._changed.notify_all()

    def _stop_others(self, but: set[int], job_id: str) -> None:
        for index, writer in self._writers.items():
            if index not in but | self._left:
                _write(writer, {"stop": job_id})

    async def _answer(self, index: int, asked: Mapping[str, Any], received_ns: int) -> None:
        match asked["ask"]:
            case "clock":
                answer: Any = {"received_ns": received_ns, "answered_ns": time.perf_counter_ns()}
            case "address":
                await self._joined.wait()
                answer = self._address_of(index)
            case "meet":
                meeting = Meeting.read(asked["meeting"])
                met = await self._meetings.come(f"{asked['job']}.", meeting, index, int(asked["of"]))
                answer = None if met is None else met.model_dump(mode="json")
            case "ended":
                answer = await self._end(index, asked)
            case "event":
                self._hear(index, Event.read(asked["event"]))
                return
            case _:
                raise ValueError(asked["ask"])
        _write(self._writers[index], {"id": asked["id"], "answer": answer})

    def _address_of(self, index: int) -> str:
        """Return where others reach a node: as it came here, and the first one by how others came to it."""
        if index:
            return str(self._writers[index].get_extra_info("peername")[0])
        return next((one for _, one in sorted(self._reached.items()) if not is_loopback(one)), "")

    async def _end(self, index: int, asked: Mapping[str, Any]) -> list[int]:
        """Wait until all members of a job have ended; return those that did not end well."""
        members = set(range(int(asked["of"])))
        ended = self._ended.setdefault(asked["job"], {})
        async with self._changed:
            ended[index] = bool(asked["well"])
            self._changed.notify_all()
            if not ended[index]:
                self._stop_others(set(ended), asked["job"])
            await self._changed.wait_for(lambda: members <= ended.keys() | self._lost)
        self._lives.clear()
        return sorted(one for one in members if not ended.get(one, False))

    def _hear(self, index: int, event: Event) -> None:
        """Hand on what the first node says, with the counts of all added up, and what any node prints."""
        if event.live is not None:
            self._lives[index] = event.live
        if event.kind == "printed":
            self._on_event(event)
        elif index == 0:
            live = add_lives(list(self._lives.values())) if event.live is not None else None
            self._on_event(event.model_copy(update={"live": live}))


class NodeLink:
    """One node's way to the meeting place."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_stop: Callable[[str], None]
    ) -> None:
        self._reader, self._writer = reader, writer
        self._on_stop = on_stop
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._of: dict[str, int] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def join(cls, file: Path, index: int, on_stop: Callable[[str], None]) -> Self:
        """Find the first node and go there."""
        place = await _find(file)
        reached, reader, writer = await _connect(place)
        _write(writer, {"token": place.token, "index": index, "reached": reached})
        return cls(reader, writer, on_stop)

    async def address(self) -> str:
        """Wait until all nodes are there; return where the others reach this one, empty where that is not known."""
        return str(await self._ask({"ask": "address"}))

    def note_job(self, job_id: str, of: int) -> None:
        """Remember how many meet for a job."""
        self._of[job_id] = of

    async def clock(self) -> ClockReading:
        """Read the first node's clock."""
        return ClockReading.read(await self._ask({"ask": "clock"}))

    async def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        """Wait for the others; the lease is the job's id, for there is none here."""
        asked = {"ask": "meet", "job": lease_id, "of": self._of[lease_id], "meeting": meeting.model_dump(mode="json")}
        answer = await self._ask(asked)
        return None if answer is None else Met.read(answer)

    def tell(self, event: Event) -> None:
        """Tell how it goes; nobody answers."""
        if not self._writer.is_closing():
            _write(self._writer, {"ask": "event", "event": event.model_dump(mode="json", exclude_defaults=True)})

    async def end(self, job_id: str, *, well: bool) -> Sequence[int]:
        """Say that this node's part has ended, and wait for the others; return the nodes that did not end well."""
        answer = await self._ask({"ask": "ended", "job": job_id, "of": self._of[job_id], "well": well})
        return [int(one) for one in answer]

    async def close(self) -> None:
        with suppress(OSError):
            _write(self._writer, {"ask": "bye"})
            await self._writer.drain()
        await cancel_tasks(self._listening)
        self._writer.close()

    async def _ask(self, question: dict[str, Any]) -> Any:
        if self._listening.done():
            raise _hub_lost()
        self._asked += 1
        number = self._asked
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        _write(self._writer, question | {"id": number})
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _listen(self) -> None:
        """Hand out answers; when nothing more can come, whoever waits for one is told so."""
        try:
            while line := await self._reader.readline():
                said = json.loads(line)
                if "stop" in said:
                    self._on_stop(said["stop"])
                elif (waiting := self._waiting.get(said["id"])) is not None and not waiting.done():
                    waiting.set_result(said["answer"])
        except (OSError, ValueError, KeyError):
            pass  # cut, or no line of ours: lost either way
        self._on_stop(EVERY_JOB)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_hub_lost())


def _hub_lost() -> TransportError:
    return TransportError("the first node of the allocation does not answer any more", hint=SEE_LOG)


def _write(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


async def _find(file: Path) -> HubAddress:
    """Wait until the first node has written down where it is."""
    deadline = time.monotonic() + _FIND_S
    while True:
        with suppress(OSError, ValidationError):  # not there yet, or half of it
            return HubAddress.read_json(file.read_bytes())
        if time.monotonic() > deadline:
            hint = "check that all nodes share the target's prefix"
            raise TransportError(f"the first node did not write {file.name} within {_FIND_S:g} s", hint=hint)
        await asyncio.sleep(_PAUSE_S)


async def _connect(address: HubAddress) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    """Try the addresses of the first node in turn; return the one that answered too."""
    told = ""
    for host in address.hosts:
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(host, address.port, limit=_LONGEST_LINE)
        except (OSError, TimeoutError) as exc:
            told = f"{host}: {exc or 'timed out'}"
        else:
            return str(writer.get_extra_info("peername")[0]), reader, writer
    hint = "the nodes of an allocation must reach each other by TCP"
    raise TransportError(f"the first node of the allocation cannot be reached ({told})", hint=hint)


def _own_hosts() -> list[str]:
    """Return where others may reach this machine, most likely first; loopback last, for nodes on one machine."""
    name = socket.gethostname()
    found = [one.address for addresses in psutil.net_if_addrs().values() for one in addresses
             if one.family == socket.AF_INET]  # fmt: skip
    far = [one for one in found if not is_loopback(one)]
    return list(dict.fromkeys([*_named_hosts(name), *far, "127.0.0.1"]))


def _named_hosts(name: str) -> list[str]:
    """Return what the machine's name leads to, where that is not itself: Debian writes 127.0.1.1 for it."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None, socket.AF_INET)}
    except OSError:
        return []
    return sorted(one for one in found if not is_loopback(one))
