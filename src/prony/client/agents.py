"""Agents of a server, and the leases by which it lends them jobs."""

from __future__ import annotations

from prony.client import wire
from prony.client.connection import ApiCall, ApiRequests, Content
from prony.client.resolve_id import only_match
from prony.model.agent import (
    Agent,
    AgentState,
    Capabilities,
    Enrolled,
    Enrolment,
    Heartbeat,
    HeartbeatAnswer,
)
from prony.model.device_history import DeviceHistory, RecentReadings
from prony.model.gang import Meeting, Met
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, LeaseView, Progress, ProgressAnswer, UploadState
from prony.model.queue import Page
from prony.ports.use_cases import iterate_pages


class RemoteAgents:
    """Agents: enrol one, list, look at one, drain, reset, remove."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def find(self, text: str) -> str:
        """Return the id of the agent that a person means.

        Args:
            text: Its id, its name, or the beginning of either.

        Raises:
            NotFoundError: No agent is called like that.
            InputError: Several agents are, with the code `ambiguous`.
        """
        agents = list(iterate_pages(self.page))
        for matches in (
            [one.id for one in agents if one.id == text],
            [one.id for one in agents if one.name == text],
            [one.id for one in agents if text and (one.id.startswith(text) or one.name.startswith(text))],
        ):
            if matches:
                return only_match(matches, text, "agent", "prony agents")
        return only_match([], text, "agent", "prony agents")

    def enroll(self, enrolment: Enrolment) -> Enrolled:
        """Make an agent known to the server, and get its id and its token."""
        return self._requests.send(Enrolled, "POST", "agents", body=enrolment)

    def page(self, *, state: AgentState | None = None, limit: int = 100, cursor: str | None = None) -> Page[Agent]:
        """Return agents, or those in one state, a page at a time."""
        return self._requests.get(Page[Agent], "agents", state=state, limit=limit, cursor=cursor)

    def get(self, agent_id: str) -> Agent:
        """Return one agent."""
        return self._requests.get(Agent, "agents", agent_id)

    def device_readings(self, agent_id: str) -> RecentReadings:
        """Return what the probes of an agent's device read in the last minutes."""
        return self._requests.get(RecentReadings, "agents", agent_id, "readings")

    def device_history(self, agent_id: str) -> DeviceHistory:
        """Return what the newest results of an agent say of its device."""
        return self._requests.get(DeviceHistory, "agents", agent_id, "history")

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat) -> HeartbeatAnswer:
        """Say that an agent lives, and hear what it shall do."""
        return self._requests.send(HeartbeatAnswer, "POST", "agents", agent_id, "heartbeat", body=heartbeat)

    def capabilities(self, agent_id: str, capabilities: Capabilities) -> Agent:
        """Say what an agent can run."""
        return self._requests.send(Agent, "PUT", "agents", agent_id, "capabilities", body=capabilities)

    def drain(self, agent_id: str) -> Agent:
        """Give it no more jobs; the one that it runs is finished."""
        return self._requests.send(Agent, "POST", "agents", agent_id, "drain")

    def reset(self, agent_id: str) -> Agent:
        """Make a faulty or draining agent active again."""
        return self._requests.send(Agent, "POST", "agents", agent_id, "reset")

    def remove(self, agent_id: str) -> None:
        """Forget an agent; what it measured stays."""
        self._requests.do("DELETE", "agents", agent_id)


class RemoteLeases:
    """Leases, as an agent sees them: ask for a job, report progress, hand in the result."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests
        self._connection = requests.connection

    def lease(self, request: LeaseRequest) -> Lease | None:
        """Ask for a job; None when the wait ended without one."""
        content = request.model_dump_json().encode()
        headers = {"Content-Type": "application/json"}
        call = ApiCall("POST", ("leases",), headers=headers, content=content, wait_s=request.wait_s)
        response = self._connection.send(call)
        if response.status_code == 204:
            return None
        return wire.read_answer(Lease, response.content, self._connection.base)

    def current(self) -> tuple[LeaseView, ...]:
        """Return the leases that are held now."""
        response = self._connection.send(ApiCall("GET", ("leases",), is_safe=True))
        return wire.read_all(LeaseView, response.content, self._connection.base)

    def progress(self, lease_id: str, progress: Progress) -> ProgressAnswer:
        """Report how far a job is, which renews its lease, and hear whether to stop."""
        return self._requests.send(ProgressAnswer, "POST", "leases", lease_id, "progress", body=progress)

    def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        """Wait for the other agents that send the same load; None when they are not all there yet."""
        content, headers = meeting.model_dump_json().encode(), {"Content-Type": "application/json"}
        path = ("leases", lease_id, "meeting")
        response = self._connection.send(ApiCall("POST", path, headers=headers, content=content, wait_s=meeting.wait_s))
        return None if response.status_code == 204 else wire.read_answer(Met, response.content, self._connection.base)

    def hand_back(self, lease_id: str, reason: str) -> None:
        """Give a job back that will not be run; it waits again."""
        self._requests.do("DELETE", "leases", lease_id, reason=reason)

    def upload_offset(self, lease_id: str) -> UploadState:
        """Return how much of a result's tar has arrived."""
        return self._requests.get(UploadState, "leases", lease_id, "upload")

    def upload(self, lease_id: str, offset: int, content: Content) -> UploadState:
        """Add bytes to a result's tar from `offset` on; a wrong offset is a ConflictError."""
        headers = {"Content-Type": "application/octet-stream"}
        call = ApiCall("PATCH", ("leases", lease_id, "upload"), {"offset": offset}, headers, content)
        return self._connection.read(UploadState, call)

    def finish(
        self, lease_id: str, content: Content = b"", *, sha256: str, next_job: bool = False, wait_s: float = 0.0
    ) -> FinishAnswer:
        """Hand in a result, and perhaps ask for the next job.

        Args:
            lease_id: The lease that ends by this.
            content: The result's whole tar, or nothing where it was uploaded before.
            sha256: The checksum of the whole tar.
            next_job: Whether the answer shall bring the next lease.
            wait_s: How long the server may wait for a next job.
        """
        headers = {"Content-Type": "application/x-tar", wire.SHA256: sha256}
        query = {"next": next_job, "wait_s": wait_s}
        call = ApiCall("PUT", ("leases", lease_id, "result"), query, headers, content, wait_s=wait_s)
        return self._connection.read(FinishAnswer, call)
