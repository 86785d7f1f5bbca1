"""Agent links: what an agent says to whom it serves, be it a Prony server or another program's orchestrator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from prony.agent.checks import AgentCheck
    from prony.agent.identity import Slot
    from prony.agent.logs import AgentLog
    from prony.model.agent import Agent, Capabilities, Enrolled, Enrolment, Heartbeat, HeartbeatAnswer
    from prony.model.device import EngineUnit
    from prony.model.gang import ClockReading, Meeting, Met
    from prony.model.lease import FinishAnswer, Lease, LeaseRequest, Progress, ProgressAnswer
    from prony.store.home import Home


class MeetingLink(Protocol):
    """The way of one member to where its gang meets."""

    async def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        """Wait for the others of a gang; None when they are not all there yet."""
        ...

    async def clock(self) -> ClockReading:
        """Read the clock of where they meet."""
        ...


class ServerLink(MeetingLink, Protocol):
    """The calls of one agent. Each ends with an answer, with `Refused`, or with a TransportError when nobody answered.

    `base` is the address that a slot keeps, and `token` what the agent proves itself with, where tokens are known.
    """

    base: str
    token: str | None

    def find_owner_token(self, home: Home) -> str | None:
        """Return the token of the server's owner, where this home is the server's too."""
        ...

    async def enroll(self, enrolment: Enrolment) -> Enrolled:
        """Introduce this agent, or a new life of it."""
        ...

    async def capabilities(self, agent_id: str, capabilities: Capabilities) -> Agent:
        """Tell what this device offers now."""
        ...

    async def heartbeat(self, agent_id: str, beat: Heartbeat) -> HeartbeatAnswer:
        """Give a sign of life, which renews what is held."""
        ...

    async def drain(self, agent_id: str) -> Agent:
        """Say that nothing more is taken."""
        ...

    async def lease(self, request: LeaseRequest) -> Lease | None:
        """Wait for a job; None where there was none in time."""
        ...

    async def progress(self, lease_id: str, progress: Progress) -> ProgressAnswer:
        """Tell how a job gets on; hear whether it is still wanted."""
        ...

    async def hand_back(self, lease_id: str, reason: str) -> None:
        """Let others have a job."""
        ...

    async def upload_offset(self, lease_id: str) -> int:
        """Return how many bytes of a result have arrived."""
        ...

    async def upload(self, lease_id: str, offset: int, piece: bytes) -> int:
        """Send one piece of a result; return how much has arrived."""
        ...

    async def finish(self, lease_id: str, content: bytes, *, sha256: str, ask_next: bool) -> FinishAnswer:
        """Hand in a result: all of it, or nothing where it was uploaded before."""
        ...

    async def scripts(self, sha256: str, to: Path) -> None:
        """Write the tar of a script's folder to a file."""
        ...


@dataclass(frozen=True)
class CommandAnswer:
    """What a command prints, as a document or as lines, and its exit code."""

    document: Mapping[str, Any]
    lines: tuple[str, ...]
    exit_code: int = 0


class OtherServer(Protocol):
    """An orchestrator of another program that an agent serves instead of a Prony server."""

    @property
    def base(self) -> str:
        """Its address as a slot keeps it: the entry point's name, a plus sign, and its URL."""
        ...

    def connect(self, slot: Slot, log: AgentLog) -> AbstractAsyncContextManager[ServerLink]:
        """Link the agent of a slot to it.

        Args:
            slot: The agent's identity and spool.
            log: Where the link tells what people should know.

        Returns:
            A block with the link.
        """
        ...

    def check(self) -> list[AgentCheck]:
        """See whether it answers, without taking a job.

        Returns:
            What `prony agent validate` shows of it.
        """
        ...

    def test(self) -> CommandAnswer:
        """See how far away it is, without taking a job.

        Returns:
            What `prony agent test` prints.
        """
        ...


class AgentLink(Protocol):
    """An entry point of `prony.agent_links`; loaded whenever `prony agent` reads its options, so its module is small.

    `title` is what it serves, as in "an X", and `option` the option that names one.
    """

    title: ClassVar[str]
    option: ClassVar[str]

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options that name an orchestrator.

        Args:
            parser: Of an action of `prony agent` that serves or reaches one.
        """
        ...

    def add_info_options(self, parser: ArgumentParser) -> None:
        """Add the option by which `prony agent info` describes the device in the other program's words.

        Args:
            parser: Of `prony agent info`.
        """
        ...

    def is_chosen(self, options: Namespace) -> bool:
        """Tell whether somebody named an orchestrator.

        Args:
            options: Those of the command; of some actions they lack what `add_options` adds.

        Returns:
            Whether this link is to be used.
        """
        ...

    def read_options(self, options: Namespace) -> OtherServer:
        """Read which orchestrator is to be served.

        Args:
            options: Those of a command that chose it.

        Returns:
            The orchestrator.

        Raises:
            InputError: An option is wrong.
        """
        ...

    def describe_unit(self, unit: EngineUnit) -> str:
        """Say what the other program calls a compute unit.

        Args:
            unit: One engine on one unit of a device.

        Returns:
            A few words; empty where it has none for it.
        """
        ...

    def describe_device(self, options: Namespace, offered: Capabilities) -> CommandAnswer | None:
        """Describe this device in the other program's words.

        Args:
            options: Those of `prony agent info`.
            offered: What the device offers.

        Returns:
            What is printed; None where nobody asked for it.
        """
        ...
