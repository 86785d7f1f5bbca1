"""Run a folder of jobs on all nodes of an allocation: each node a part of every job, the first one merges the results.

No server is needed: the nodes meet at the first of them, and share the folder.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from prony.agent.attempt import Messenger
from prony.agent.finalize_attempt import Ending, seal
from prony.agent.logs import AgentLog
from prony.agent.node_hub import EVERY_JOB, NodeHub, NodeLink
from prony.agent.process import RunnerProcess
from prony.agent.spool import Work
from prony.agent.stopping import cancel_tasks
from prony.app.job_log import LOOK_S
from prony.app.printed_lines import PrintedEvents, PrintedFiles
from prony.app.runner import read_sent_jobs, take_variables
from prony.error_codes import SEE_LOG
from prony.errors import PronyError, exit_code
from prony.model.event import Event
from prony.model.gang import Part
from prony.model.job import Job
from prony.model.result import Failure, ResultState
from prony.model.target import DoneNote
from prony.runner import job_folder
from prony.runner.folder import write_noun
from prony.runner.gang import LostGangError
from prony.runner.merge_gang import merge, reason_of
from prony.runner.parts import PartFolder
from prony.runner.scheduler_variables import drop_scheduler_variables
from prony.store.folder import read_nouns
from prony.store.home import home

_MEETING, _PARTS, _NODE = "meeting.json", "parts", "node"
_LINGER_S = 1.0


def run_folder_on_nodes(folder: Path, part: Part) -> int:
    """Run the jobs of a folder that was sent here as one of several nodes, once; the first one leaves results, events
    and a list of files in it. Return the exit code."""
    folder = folder.absolute()
    claim = folder if part.index == 0 else folder / _PARTS / str(part.index)
    claim.mkdir(parents=True, exist_ok=True)
    if not job_folder.begin_job_folder(claim):
        return 0
    os.chdir(folder)
    take_variables(folder)
    for name in os.environ.keys() - drop_scheduler_variables(os.environ).keys():
        del os.environ[name]
    return asyncio.run(_Node(folder, part).run())


class _Node:
    def __init__(self, folder: Path, part: Part) -> None:
        self._folder = folder
        self._part = part
        self._home = home().create()
        self._log = AgentLog(level="warning")
        self._stopping = asyncio.Event()  # whoever started the allocation wants it to end
        self._stops: defaultdict[str, asyncio.Event] = defaultdict(
            asyncio.Event
        )  # by job, for all where a node is lost
        self._events: BinaryIO | None = None

    async def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        try:
            note = await self._run_as_first() if self._part.index == 0 else await self._run_as_other()
        except PronyError as exc:
            self._log.alarm(exc.message, hint=exc.hint)
            note = DoneNote(exit_code=exit_code(exc), error=exc.message, hint=exc.hint)
        if self._part.index == 0:
            stopped = self._stopping.is_set()
            job_folder.write_done_note(self._folder, note.model_copy(update={"stopped": stopped}))
        return note.exit_code

    async def _run_as_first(self) -> DoneNote:
        hub = NodeHub(self._part.of, self._write_event)
        with (self._folder / job_folder.EVENTS).open("ab", buffering=0) as self._events:
            try:
                await hub.open(self._folder / _MEETING)
                return await self._run_as_other()
            finally:
                await hub.close()

    def _write_event(self, event: Event) -> None:
        if self._events is not None:
            with suppress(OSError):  # a disk that is full; the work goes on and the folder tells
                self._events.write(event.model_dump_json(exclude_defaults=True).encode() + b"\n")

    async def _run_as_other(self) -> DoneNote:
        """Go to the meeting place and run the jobs one after another; a lost node ends all of it."""
        link = await NodeLink.join(self._folder / _MEETING, self._part.index, lambda job_id: self._stops[job_id].set())
        try:
            name = socket.gethostname()
            (self._folder / _PARTS / str(self._part.index)).mkdir(parents=True, exist_ok=True)
            (self._folder / _PARTS / str(self._part.index) / _NODE).write_text(name, encoding="utf-8")
            address = await link.address()
            jobs = read_sent_jobs(self._folder)
            states = [await self._run_job(job, link, address) for job in jobs if not self._is_over]
        finally:
            await link.close()
        return DoneNote(exit_code=0 if len(states) == len(jobs) and all(states) else 1)

    @property
    def _is_over(self) -> bool:
        return self._stopping.is_set() or self._stops[EVERY_JOB].is_set()

    async def _run_job(self, job: Job, link: NodeLink, address: str) -> bool:
        """Run this node's part of a job, where it has one; return whether all of it went well, as far as known."""
        if self._part.index >= job.agents:
            return True
        link.note_job(job.id, job.agents)
        work = self._begin(job)
        own = Job.read_json(work.job_file.read_bytes())
        ending = await self._perform(own, work, link, job.id, address)
        result = await asyncio.to_thread(seal, work, own, self._home, ending)
        well = result.state is ResultState.COMPLETE
        bad = await link.end(job.id, well=well)
        if self._part.index == 0:
            await asyncio.to_thread(self._merge, job, bad)
        return well and not bad

    def _begin(self, job: Job) -> Work:
        work = Work(self._work_path(job, self._part.index))
        work.path.mkdir(parents=True)
        own = job
        if job.agents > 1:
            part = Part(index=self._part.index, of=job.agents)
            own = job.model_copy(update={"id": f"{job.id}.{part.index}", "part": part})
        write_noun(work.job_file, own)
        return work

    def _work_path(self, job: Job, index: int) -> Path:
        return self._folder / _PARTS / str(index) / job.id

    async def _perform(self, own: Job, work: Work, link: NodeLink, whole_id: str, address: str) -> Ending:
        """Run a part to its end, or to where it is stopped."""
        variables = {"PRONY_ADDRESS": address}
        runner = await RunnerProcess.start(work, self._home, None, variables, is_part=own.part is not None)
        messenger = Messenger(link, whole_id, tell=runner.tell, log=self._log)
        hearing = asyncio.create_task(_hear(runner, messenger, link, whole_id))
        telling = asyncio.create_task(_tell_printed(work, link, whole_id, own.part or Part(index=0, of=1)))
        exiting = asyncio.create_task(runner.wait())
        asking = [
            asyncio.create_task(one.wait()) for one in (self._stopping, self._stops[whole_id], self._stops[EVERY_JOB])
        ]
        try:
            await asyncio.wait({exiting, *asking}, return_when=asyncio.FIRST_COMPLETED)
            is_stopped = not exiting.done()
            code = await runner.stop() if is_stopped else exiting.result()
            with suppress(TimeoutError):
                await asyncio.wait_for(hearing, _LINGER_S)
        finally:
            runner.close()
            await cancel_tasks(hearing, telling, exiting, *asking)
            await messenger.close()
        return Ending(code, cancelled=is_stopped)

    def _merge(self, job: Job, bad: Sequence[int]) -> None:
        """Write the one result of a job from what its nodes left."""
        into = self._folder / job_folder.RESULT / job.id
        into.parent.mkdir(exist_ok=True)
        if job.agents == 1:
            Work(self._work_path(job, 0)).folder.rename(into)
            return
        found = [self._read_part(job, index) for index in range(job.agents)]
        there = [one for one in found if one is not None]
        failure = None if self._stopping.is_set() else self._explain(job, bad, there)
        merge(there, job, into, failure)

    def _read_part(self, job: Job, index: int) -> PartFolder | None:
        work = Work(self._work_path(job, index))
        try:
            result = read_nouns(work.folder).result
            name = (self._folder / _PARTS / str(index) / _NODE).read_text(encoding="utf-8")
        except (PronyError, OSError):  # the node was lost before it wrote anything that can be read
            return None
        return PartFolder(f"{name} ({index})" if self._has_twin(name, job) else name, work.folder, result)

    def _has_twin(self, name: str, job: Job) -> bool:
        """Do two nodes have one name, as on a machine that plays several?"""
        names = [path.read_text(encoding="utf-8") for index in range(job.agents)
                 if (path := self._folder / _PARTS / str(index) / _NODE).exists()]  # fmt: skip
        return names.count(name) > 1

    def _explain(self, job: Job, bad: Sequence[int], parts: Sequence[PartFolder]) -> Failure | None:
        """Return why the job failed: what a node says itself, or that it was lost."""
        if not bad:
            return None
        told = reason_of(parts, job)
        # That the others were lost is only what a node saw of the one that was.
        if told is not None and told.code != LostGangError.code:
            return told
        nodes = ", ".join(str(index) for index in bad)
        message = f"node {nodes} of {job.agents} was lost or stopped before its part ended"
        return Failure(code="agent_lost", message=message, hint=SEE_LOG, whose="prony")


async def _hear(runner: RunnerProcess, messenger: Messenger, link: NodeLink, job_id: str) -> None:
    async for said in runner.events():
        if isinstance(said, Event) and said.kind == "meet":
            messenger.send(said)
        elif isinstance(said, Event):
            link.tell(said.model_copy(update={"job_id": job_id}))


async def _tell_printed(work: Work, link: NodeLink, job_id: str, part: Part) -> None:
    """Tell what this node's part prints, under the names that its files have in the merged result."""
    files = PrintedFiles(work.folder / "logs")
    told = PrintedEvents(job_id, link.tell, share=part.of)
    below = f"part-{part.index}/" if part.index else ""
    try:
        while True:
            await asyncio.sleep(LOOK_S)
            for name, lines in files.read(is_over=False):
                told.tell(f"{below}{name}", lines)
    finally:
        for name, lines in files.read(is_over=True):
            told.tell(f"{below}{name}", lines)
        told.tell_skipped()
