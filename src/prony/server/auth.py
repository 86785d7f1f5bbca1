"""Find out who asks, by token or by a browser's session, and what each may do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import ParamSpec, TypeVar

from starlette.types import Scope

from prony.app.access import Access, require_role
from prony.errors import AccessError
from prony.model.access import Principal, Role
from prony.model.loopback import is_loopback_url
from prony.server.body import header
from prony.server.session import check_same_origin, is_own_origin, read_session

P = ParamSpec("P")
T = TypeVar("T")

HEALTH = "/api/v1/health"
# Whoever reaches a server that was told to ask nobody.
OWNER = Principal(name="local", role=Role.ADMIN)
NOBODY = Principal(name="", role=Role.VIEWER)
# Beyond what `Access` remembers itself: a token that another server revoked must stop within 5 s in all.
_KNOWN_S = 0.9
_MOST_KNOWN = 20_000

# Of every operation; None: nobody is asked who they are.
ROLES: dict[str, Role | None] = {
    "health": None,
    **dict.fromkeys(
        (
            "submit", "modify", "delete", "cancel_experiment", "retry_experiment", "rerun", "cancel", "retry", "batch",
            "add_schedule", "pause_schedule", "resume_schedule", "remove_schedule", "run_schedule",
            "ack", "set_baseline", "clear_baseline", "keep_scripts", "import_results", "score",
        ),
        Role.SUBMITTER,
    ),
    **dict.fromkeys(
        (
            "experiments", "experiment", "watch", "results", "report", "export", "jobs", "job", "logs", "result",
            "samples", "telemetry", "files", "file", "file_text", "load_series",
            "agents", "agent", "device_readings", "device_history",
            "leases", "compatibility", "queue", "stats", "failures", "metrics", "metrics_targets", "docs",
            "openapi", "docs_asset", "schedules", "schedule", "fires", "comparison", "gates",
            "sweep_report", "matrix", "distribution", "timeline", "starts", "lines", "sections", "counters",
            "check", "schema", "examples", "forms", "draft", "catalogue", "kinds", "events", "listing", "overview",
            "about", "alarms", "alarm", "incidents", "deliveries",
            "series", "history", "baseline", "changes", "change", "targets", "placements",
        ),
        Role.VIEWER,
    ),
    **dict.fromkeys(
        (
            "enroll", "heartbeat", "capabilities", "drain", "lease", "progress", "hand_back", "upload_offset", "upload",
            "finish", "meet", "clock", "scripts",
        ),
        Role.AGENT,
    ),
    **dict.fromkeys(
        (
            "reset", "remove", "add_token", "tokens", "revoke_token", "audit", "add_alarm", "remove_alarm",
            "test_alarm", "login_link", "check_store",
        ),
        Role.ADMIN,
    ),
}  # fmt: skip


class Authenticator:
    """`is_open`: somebody said `--no-auth`, so whoever brings no token is the admin."""

    def __init__(self, access: Access, *, is_open: bool) -> None:
        self.access = access
        self.is_open = is_open
        self._known: dict[bytes, tuple[Principal, float]] = {}
        # Of its own: a token must not wait behind somebody's upload.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="prony-gate")

    async def admit(self, scope: Scope) -> Principal:
        """Return who asks, or refuse."""
        if scope["path"] == HEALTH:
            return NOBODY
        said = header(scope, b"authorization")
        if said:
            return await self._authenticate(said, scope)
        if self.is_open:
            check_is_local(scope)
            return OWNER
        if read_session(scope):
            return await self.admit_session(scope)
        raise AccessError(
            "a token is needed",
            hint="send `Authorization: Bearer TOKEN`; `prony tokens add` makes one; browsers: `prony server link`",
            code="unauthorized",
        )

    async def admit_session(self, scope: Scope) -> Principal:
        """Return whose browser asks; refuse what another site's page has it send."""
        check_same_origin(scope)
        return await self._authenticate(b"Bearer " + read_session(scope), scope)

    async def blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what waits for the database without keeping everybody else waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def forget(self) -> None:
        """Ask the store again about everybody: somebody's token was revoked."""
        self._known.clear()

    async def _authenticate(self, said: bytes, scope: Scope) -> Principal:
        now = time.monotonic()
        principal, until = self._known.get(said, (NOBODY, 0.0))
        if now < until:
            return principal
        kind, _, secret = said.partition(b" ")
        if kind.lower() != b"bearer":
            raise AccessError("send the token as `Authorization: Bearer TOKEN`", code="unauthorized")
        text = secret.strip().decode("latin-1")
        principal = await self.blocking(self.access.authenticate, text, address_of(scope))
        if not principal.once:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[said] = (principal, now + _KNOWN_S)
        return principal


def allow(principal: Principal, operation: str) -> None:
    """Refuse who may not do this."""
    role = ROLES[operation]
    if role is not None:
        require_role(principal, role, enrolling=operation == "enroll")


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def check_is_local(scope: Scope, *, any_host: bool = False, takes_tokens: bool = True) -> None:
    """Refuse a browser that some web page sent here: by a name of its own for this machine, or across origins."""
    without, instead = (" without a token", ", or send a token") if takes_tokens else ("", "")
    host = header(scope, b"host")
    if not any_host and not _is_loopback(host):
        raise AccessError(
            f"refused the host {host[:100].decode('latin-1')!r}: only loopback names work{without}",
            hint=f"use http://localhost or http://127.0.0.1{instead}",
            code="foreign_host",
        )
    origin = header(scope, b"origin")
    if origin and not is_own_origin(scope):
        raise AccessError(
            f"a page of {origin[:100].decode('latin-1')!r} may not use this server{without}",
            hint=f"use the server's own pages{instead}",
            code="foreign_origin",
        )


@lru_cache(maxsize=256)
def _is_loopback(host: bytes) -> bool:
    return is_loopback_url(f"//{host.decode('latin-1')}")
