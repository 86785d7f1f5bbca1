"""HTTP client for the agent's calls to its server.

A call ends in one of three ways: an answer, `Refused` with the server's status and words, or a TransportError when
nobody answered. Nothing is repeated here: who calls knows what a repeat means.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from prony import __version__
from prony.client import wire
from prony.client.owner import find_owner_token
from prony.errors import PronyError, TransportError
from prony.model.agent import Agent, Capabilities, Enrolled, Enrolment, Heartbeat, HeartbeatAnswer
from prony.model.base import Noun
from prony.model.gang import ClockReading, Meeting, Met
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, Progress, ProgressAnswer, UploadState
from prony.model.loopback import is_loopback_url
from prony.store.home import Home
from prony.store.result_tar import disk_told

N = TypeVar("N", bound=Noun)
T = TypeVar("T")

_CONNECT_S = 5.0
_TOKEN_HINT = (
    "on the server, `prony tokens add NAME --role agent --once` makes one; give its file to `prony agent enroll "
    "--token-file`"
)
_ANSWER_S = 15.0
# Servers close connections that rest for five seconds: rather open a new one than write into a closing one.
_KEEP_S = 4.0
# Of what a client is told it did wrong, these may be right the next time.
_PASSING = frozenset({401, 403, 408, 425, 429})
_TROUBLE = frozenset({429, 502, 503, 504, 507})


class Refused(Exception):  # noqa: N818 - an answer, and not a fault of this side
    """The server answered, and not with what was asked for."""

    def __init__(self, status: int, error: PronyError, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status}: {error.message}")
        self.status = status
        self.error = error
        self.retry_after_s = retry_after_s

    @property
    def is_final(self) -> bool:
        """Would the same request be refused for ever?"""
        return 400 <= self.status < 500 and self.status not in _PASSING

    @property
    def is_trouble(self) -> bool:
        """Is it the server that cannot, and not this request that is wrong: no room, too much to do, going down?"""
        return self.status in _TROUBLE and self.error.code != "checksum_mismatch"

    @property
    def is_dismissal(self) -> bool:
        """Does the server not know this agent, its token or this life of it?"""
        return self.status in (401, 404, 409)


class ServerClient:
    """Open it as a block."""

    def __init__(self, base: str, token: str | None = None, *, answer_s: float = _ANSWER_S) -> None:
        self.base = base
        self.token = token
        self._answer_s = answer_s
        self._http = httpx.AsyncClient(
            headers={"User-Agent": f"prony-agent/{__version__}"},
            # Reading the certificates of the world takes longer than most requests.
            verify=not base.startswith("http:"),
            trust_env=not is_loopback_url(base),
            limits=httpx.Limits(keepalive_expiry=_KEEP_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._http.aclose()

    # This agent

    def find_owner_token(self, home: Home) -> str | None:
        """Return the token of the server's owner, where this home is the server's too."""
        return find_owner_token(self.base, home, attempts=1)

    async def health(self) -> httpx.Response:
        """Return the answer as it came: its status, its head with the server's time, and how long it took."""
        return await self._send("GET", ("health",))

    async def enroll(self, enrolment: Enrolment) -> Enrolled:
        return await self._read(Enrolled, "POST", "agents", body=enrolment)

    async def agent(self, agent_id: str) -> Agent:
        return await self._read(Agent, "GET", "agents", agent_id)

    async def heartbeat(self, agent_id: str, beat: Heartbeat) -> HeartbeatAnswer:
        return await self._read(HeartbeatAnswer, "POST", "agents", agent_id, "heartbeat", body=beat)

    async def capabilities(self, agent_id: str, capabilities: Capabilities) -> Agent:
        return await self._read(Agent, "PUT", "agents", agent_id, "capabilities", body=capabilities)

    async def drain(self, agent_id: str) -> Agent:
        return await self._read(Agent, "POST", "agents", agent_id, "drain")

    # Leases

    async def lease(self, request: LeaseRequest) -> Lease | None:
        response = await self._ask("POST", ("leases",), body=request, wait_s=request.wait_s)
        return (
            None
            if response.status_code == HTTPStatus.NO_CONTENT
            else wire.read_answer(Lease, response.content, self.base)
        )

    async def progress(self, lease_id: str, progress: Progress) -> ProgressAnswer:
        return await self._read(ProgressAnswer, "POST", "leases", lease_id, "progress", body=progress)

    async def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        """Wait for the others of a gang; None when they are not all there yet."""
        response = await self._ask("POST", ("leases", lease_id, "meeting"), body=meeting, wait_s=meeting.wait_s)
        return (
            None
            if response.status_code == HTTPStatus.NO_CONTENT
            else wire.read_answer(Met, response.content, self.base)
        )

    async def clock(self) -> ClockReading:
        return await self._read(ClockReading, "GET", "clock")

    async def hand_back(self, lease_id: str, reason: str) -> None:
        await self._ask("DELETE", ("leases", lease_id), params={"reason": reason[:500]})

    async def upload_offset(self, lease_id: str) -> int:
        return (await self._read(UploadState, "GET", "leases", lease_id, "upload")).offset

    async def upload(self, lease_id: str, offset: int, piece: bytes) -> int:
        """Send one piece of a result; return how much has arrived."""
        response = await self._ask("PATCH", ("leases", lease_id, "upload"), params={"offset": offset}, content=piece)
        return wire.read_answer(UploadState, response.content, self.base).offset

    async def finish(self, lease_id: str, content: bytes, *, sha256: str, ask_next: bool) -> FinishAnswer:
        """Hand in a result: all of it, or nothing where it was uploaded before."""
        response = await self._ask(
            "PUT",
            ("leases", lease_id, "result"),
            params={"next": str(ask_next).lower(), "wait_s": 0},
            content=content,
            headers={wire.SHA256: sha256, "Content-Type": "application/x-tar"},
        )
        return wire.read_answer(FinishAnswer, response.content, self.base)

    async def scripts(self, sha256: str, to: Path) -> None:
        """Write the tar of a script's folder to a file."""
        url, head = wire.endpoint(self.base, "scripts", sha256), wire.headers(self.token)
        timeout = httpx.Timeout(self._answer_s, connect=_CONNECT_S)
        try:
            async with self._http.stream("GET", url, headers=head, timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise self._read_refusal(response)
                with disk_told(to), to.open("wb") as file:
                    async for piece in response.aiter_bytes():
                        file.write(piece)
        except (httpx.HTTPError, httpx.StreamError) as exc:
            raise wire.unreachable(self.base, str(exc) or type(exc).__name__) from exc

    # Inside

    async def _read(self, noun: type[N], method: str, *parts: str, body: Noun | None = None) -> N:
        response = await self._ask(method, parts, body=body)
        return wire.read_answer(noun, response.content, self.base)

    async def _ask(
        self, method: str, parts: tuple[str, ...], *, body: Noun | None = None, wait_s: float = 0.0, **rest: Any
    ) -> httpx.Response:
        if body is not None:
            rest |= {"content": body.model_dump_json().encode(), "headers": {"Content-Type": "application/json"}}
        response = await self._send(method, parts, wait_s=wait_s, **rest)
        if not response.is_success:
            raise self._read_refusal(response)
        return response

    async def _send(
        self,
        method: str,
        parts: tuple[str, ...],
        *,
        wait_s: float = 0.0,
        params: Mapping[str, str | int | float] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            return await self._http.request(
                method,
                wire.endpoint(self.base, *parts),
                params=params,
                content=content,
                headers={**wire.headers(self.token), **(headers or {})},
                timeout=httpx.Timeout(self._answer_s + wait_s, connect=_CONNECT_S),
            )
        except httpx.TimeoutException as exc:
            raise wire.unreachable(self.base, "it timed out") from exc
        except (httpx.HTTPError, httpx.StreamError) as exc:
            raise wire.unreachable(self.base, str(exc) or type(exc).__name__) from exc

    def _read_refusal(self, response: httpx.Response) -> Refused:
        location = response.headers.get("Location", "")
        hint = "" if self.token else _TOKEN_HINT
        error = wire.error_of(response.status_code, response.content, self.base, location=location, token_hint=hint)
        return Refused(response.status_code, error, _seconds(response.headers.get("Retry-After")))


def _seconds(text: str | None) -> float | None:
    return min(float(text), 3600.0) if text and text.isascii() and text.isdigit() else None


def server_date(response: httpx.Response) -> float | None:
    """Return the server's own time in seconds of the epoch, to the second; None where it does not tell."""
    text = response.headers.get("Date")
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except ValueError:
        return None


async def ask_again_for(ask: Callable[[], Awaitable[T]], most_s: float) -> T:
    """Ask again while nobody answers, for so long and no longer; for what is harmless to ask twice."""
    last = TransportError(f"no answer within {most_s:g} s", hint="`prony agent test` checks the connection")
    pauses = wire.delays(0.1, 2.0)
    try:
        async with asyncio.timeout(most_s):
            while True:
                try:
                    return await ask()
                except TransportError as exc:
                    last = exc
                await asyncio.sleep(next(pauses))
    except TimeoutError:
        raise last from None
