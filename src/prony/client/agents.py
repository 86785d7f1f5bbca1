"""Operations on agents, and those that agents themselves call: enrol, beat, lease, tell, hand in."""

from __future__ import annotations

from prony.client import wire
from prony.client.connection import Call, Content
from prony.client.request_shapes import Asking
from prony.model.agent import (
    Agent,
    AgentState,
    Capabilities,
    Enrolled,
    Enrolment,
    Heartbeat,
    HeartbeatAnswer,
)
from prony.model.gang import Meeting, Met
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, LeaseView, Progress, ProgressAnswer, UploadState
from prony.model.queue import Page


class Agents(Asking):
    def enroll(self, enrolment: Enrolment) -> Enrolled:
        return self._send(Enrolled, "POST", "agents", body=enrolment)

    def agents(self, *, state: AgentState | None = None, limit: int = 100, cursor: str | None = None) -> Page[Agent]:
        return self._get(Page[Agent], "agents", state=state, limit=limit, cursor=cursor)

    def agent(self, agent_id: str) -> Agent:
        return self._get(Agent, "agents", agent_id)

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat) -> HeartbeatAnswer:
        return self._send(HeartbeatAnswer, "POST", "agents", agent_id, "heartbeat", body=heartbeat)

    def capabilities(self, agent_id: str, capabilities: Capabilities) -> Agent:
        return self._send(Agent, "PUT", "agents", agent_id, "capabilities", body=capabilities)

    def drain(self, agent_id: str) -> Agent:
        """Give it no more jobs; the one that it runs is finished."""
        return self._send(Agent, "POST", "agents", agent_id, "drain")

    def reset(self, agent_id: str) -> Agent:
        """Make a faulty or draining agent active again."""
        return self._send(Agent, "POST", "agents", agent_id, "reset")

    def remove(self, agent_id: str) -> None:
        self._do("DELETE", "agents", agent_id)


class Leases(Asking):
    def lease(self, request: LeaseRequest) -> Lease | None:
        """Ask for a job; None when the wait ended without one."""
        content = request.model_dump_json().encode()
        headers = {"Content-Type": "application/json"}
        call = Call("POST", ("leases",), headers=headers, content=content, wait_s=request.wait_s)
        response = self._connection.send(call)
        if response.status_code == 204:
            return None
        return wire.read(Lease, response.content, self._connection.base)

    def leases(self) -> tuple[LeaseView, ...]:
        response = self._connection.send(Call("GET", ("leases",), is_safe=True))
        return wire.read_all(LeaseView, response.content, self._connection.base)

    def progress(self, lease_id: str, progress: Progress) -> ProgressAnswer:
        return self._send(ProgressAnswer, "POST", "leases", lease_id, "progress", body=progress)

    def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        """Wait for the other agents that send the same load; None when they are not all there yet."""
        content, headers = meeting.model_dump_json().encode(), {"Content-Type": "application/json"}
        path = ("leases", lease_id, "meeting")
        response = self._connection.send(Call("POST", path, headers=headers, content=content, wait_s=meeting.wait_s))
        return None if response.status_code == 204 else wire.read(Met, response.content, self._connection.base)

    def hand_back(self, lease_id: str, reason: str) -> None:
        self._do("DELETE", "leases", lease_id, reason=reason)

    def upload_offset(self, lease_id: str) -> UploadState:
        return self._get(UploadState, "leases", lease_id, "upload")

    def upload(self, lease_id: str, offset: int, content: Content) -> UploadState:
        """Add bytes to a result's tar from `offset` on; a wrong offset is a ConflictError."""
        headers = {"Content-Type": "application/octet-stream"}
        call = Call("PATCH", ("leases", lease_id, "upload"), {"offset": offset}, headers, content)
        return self._connection.read(UploadState, call)

    def finish(
        self, lease_id: str, content: Content = b"", *, sha256: str, next_job: bool = False, wait_s: float = 0.0
    ) -> FinishAnswer:
        """Hand in a result: its whole tar, or nothing where it was uploaded before; perhaps ask for the next job."""
        headers = {"Content-Type": "application/x-tar", wire.SHA256: sha256}
        query = {"next": next_job, "wait_s": wait_s}
        call = Call("PUT", ("leases", lease_id, "result"), query, headers, content, wait_s=wait_s)
        return self._connection.read(FinishAnswer, call)
