"""Authenticate tokens, throttle addresses that fail too often, authorise principals by role, and keep the audit trail.

Everything here blocks; a server calls it in a thread, from as many threads as it likes.

A server's owner has the token of the server's home, or is given a fresh one.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from threading import Lock

from prony.app.local_store import database
from prony.errors import AccessError, InputError, StoreError
from prony.model.access import AuditEntry, MadeToken, NewToken, Principal, Role, Token
from prony.model.queue import Page
from prony.ports.clock import Clock, SystemClock
from prony.store import audit, tokens
from prony.store.database import Engine, reading, writing
from prony.store.home import Home
from prony.store.lock import hold_file_lock
from prony.store.owner_token import is_private, read_owner_token, write_owner_token

MOST = 10
WINDOW_S = 60
_WINDOW_NS = WINDOW_S * 10**9
_MOST_ADDRESSES = 10_000
_MOST_TRUSTED = 20_000


class Failures:
    """What failed of late, by address. Secrets are too long to be guessed: this spares the database and the logs.

    A secret that was good before is heard from any address, because many agents may share one with a broken neighbour.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()
        self._trusted: OrderedDict[str, None] = OrderedDict()

    def check(self, address: str, digest: str) -> None:
        """Refuse an address with more than `MOST` failures within the window; refusals count for nothing."""
        with self._lock:
            times = self._failed.get(network_of(address))
            if digest in self._trusted or times is None or len(times) <= MOST:
                return
            left_ns = times[0] + _WINDOW_NS - self._clock.monotonic_ns()
        if left_ns > 0:
            raise AccessError(
                f"more than {MOST} wrong tokens came from {address} within {WINDOW_S} s",
                hint=f"try again in {math.ceil(left_ns / 10**9)} s, with a valid token",
                code="too_many",
            )

    def add(self, address: str, digest: str) -> None:
        """Count a failure; whatever was thought of this secret is forgotten."""
        network = network_of(address)
        with self._lock:
            self._trusted.pop(digest, None)
            times = self._failed.setdefault(network, deque(maxlen=MOST + 1))
            times.append(self._clock.monotonic_ns())
            self._failed.move_to_end(network)
            if len(self._failed) > _MOST_ADDRESSES:
                self._failed.popitem(last=False)  # the one that has not failed for the longest time

    def trust(self, digest: str) -> None:
        """Hear this secret from now on wherever it comes from."""
        with self._lock:
            self._trusted[digest] = None
            self._trusted.move_to_end(digest)
            if len(self._trusted) > _MOST_TRUSTED:
                self._trusted.popitem(last=False)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return whom an address stands for: one that has IPv6 has at least 2**64 addresses of it."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
    return str(found)


# How long a token that was revoked elsewhere may still be taken here.
_CACHE_NS = 4 * 10**9
_MOST_CACHED = 20_000
# When a token was last used is noted once in this time for each, and for all together after a shorter one.
_NOTED_FOR = timedelta(seconds=60)
_NOTING_NS = 10 * 10**9
_RANKS = {Role.VIEWER: 0, Role.SUBMITTER: 1, Role.ADMIN: 2}
# The name of the owner's token, in lists and in the audit trail.
OWNER = "owner"
_ENROL_HINT = "`prony tokens add NAME --role agent --once` makes one"


def require_role(principal: Principal, role: Role, *, enrolling: bool = False) -> None:
    """Refuse who has not this role or one above it. An agent is apart: no role but the admin's includes its own.

    A one-time token may do one thing, so its holder is refused unless this is for `enrolling`.
    """
    if principal.once and not enrolling:
        raise AccessError(
            "a one-time token can only enrol an agent", hint="use the token that the agent got when it enrolled"
        )
    if principal.role is Role.ADMIN or principal.role is role:
        return
    if principal.role in _RANKS and role in _RANKS and _RANKS[principal.role] >= _RANKS[role]:
        return
    raise AccessError(
        f"this needs the role {role.value}; {principal.name} has the role {principal.role.value}",
        hint=f"ask an admin for a token: `prony tokens add NAME --role {role.value}`",
    )


def require_agent(principal: Principal, agent_id: str) -> None:
    """Refuse who is neither this very agent nor an admin."""
    require_role(principal, Role.AGENT)
    if principal.role is not Role.ADMIN and principal.agent_id != agent_id:
        raise AccessError(f"only agent {agent_id} itself may do this", hint="use the agent's own token")


@contextmanager
def open_access(url: str = "") -> Iterator[Access]:
    """The access of a database without a server: the home's own, or the one at `url`."""
    with database(url) as engine:
        yield Access(engine, SystemClock())


@dataclass
class _Cache:
    """Who was known a moment ago, by hash; and the tokens whose use is still to be noted.

    `age` grows when something is revoked: what was read from the database before that is not remembered after it.
    """

    known: dict[str, tuple[Principal, int]] = field(default_factory=dict)
    age: int = 0
    used: set[str] = field(default_factory=set)
    noted_ns: int | None = None


class Access:
    """Tokens and the audit trail of one database."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._failures = Failures(clock)
        self._lock = Lock()
        self._cache = _Cache()

    # Tokens

    def add_token(self, new: NewToken, *, agent_id: str | None = None) -> MadeToken:
        """Make a token; its secret is in the answer and nowhere else."""
        if (new.once or agent_id) and new.role is not Role.AGENT:
            raise InputError(
                f"a one-time token is for enrolling an agent and cannot have the role {new.role.value}",
                hint="leave out --once, or choose the role agent",
            )
        expires_at = None if new.expires_in_s is None else self._clock.now() + timedelta(seconds=new.expires_in_s)
        made = self._make_token(new.name, new.role, once=new.once, agent_id=agent_id, expires_at=expires_at)
        with writing(self._engine) as connection:
            tokens.add(connection, made.token, tokens.hash_secret(made.secret))
        return made

    def add_session(self, name: str, role: Role, expires_in_s: float) -> MadeToken:
        """Make the token of a browser that has just logged in; wrong ones from its address do not keep it out."""
        made = self.add_token(NewToken(name=name, role=role, expires_in_s=expires_in_s))
        self._failures.trust(tokens.hash_secret(made.secret))
        return made

    def tokens(self, limit: int, cursor: str | None = None) -> Page[Token]:
        """Return tokens without their secrets, the newest first, those that have ended with them."""
        self._note_uses(at_once=True)
        with reading(self._engine) as connection:
            return tokens.page(connection, limit, cursor)

    def revoke_token(self, token_id: str) -> None:
        """End a token: here at once, in other servers of this database within 5 s."""
        with writing(self._engine) as connection:
            tokens.revoke(connection, token_id, self._clock.now())
        self._forget_known()

    def revoke_agent(self, agent_id: str) -> int:
        """End every token of an agent's own; return how many there were."""
        with writing(self._engine) as connection:
            count = tokens.revoke_agent(connection, agent_id, self._clock.now())
        self._forget_known()
        return count

    def keep_owner(self, secret: str) -> bool:
        """Take the owner's secret for an admin's; False where it was revoked or is somebody else's."""
        digest = tokens.hash_secret(secret)
        with writing(self._engine) as connection:
            known = tokens.by_hash(connection, digest)
            if known is None:
                known = self._make_token(OWNER, Role.ADMIN, agent_id=None).token
                tokens.add(connection, known, digest)
        is_good = known.role is Role.ADMIN and not _trouble(known, self._clock.now())
        if is_good:
            self._failures.trust(digest)
        return is_good

    def drop_owner(self, secret: str) -> None:
        """End an owner's secret that others could have read."""
        with writing(self._engine) as connection:
            known = tokens.by_hash(connection, tokens.hash_secret(secret))
            if known is not None:
                tokens.revoke(connection, known.id, self._clock.now())
        self._forget_known()

    # Who asks

    def authenticate(self, secret: str, address: str) -> Principal:
        """Return who has this secret, or refuse; an address that fails too often is refused unheard for a while."""
        if not secret:
            raise AccessError("a token is needed", hint="send it as `Authorization: Bearer TOKEN`", code="unauthorized")
        digest = tokens.hash_secret(secret)
        principal = self._find_cached(digest)
        if principal is None:
            self._failures.check(address, digest)
            principal = self._looked_up(digest, address)
            self._failures.trust(digest)
        self._note_uses()
        return principal

    def exchange(self, principal: Principal, agent_id: str, name: str) -> str | None:
        """Give an agent a secret of its own, for the token that it enrols with; a one-time token is used up.

        None where it needs no other: it has come with its own, or the server asks for none.
        """
        require_role(principal, Role.AGENT, enrolling=True)
        if principal.agent_id is not None:
            require_agent(principal, agent_id)
            return None
        if principal.token_id is None:
            return None
        made, now = self._make_token(name, Role.AGENT, agent_id=agent_id), self._clock.now()
        with writing(self._engine) as connection:
            if principal.once and not tokens.use_up(connection, principal.token_id, agent_id, now):
                raise AccessError("this one-time token was used already", hint=_ENROL_HINT, code="unauthorized")
            if not principal.once and not tokens.is_good(connection, principal.token_id, now):
                raise AccessError("this token is no longer valid", hint=_ENROL_HINT, code="unauthorized")
            # An agent that lost its token comes for another: the lost one must open nothing any more.
            tokens.revoke_agent(connection, agent_id, now)
            tokens.add(connection, made.token, tokens.hash_secret(made.secret))
        self._forget_known()
        return made.secret

    # What was done

    def record(self, entry: AuditEntry) -> None:
        """Add to the trail; the database gives the entry its id, whatever id it comes with."""
        with writing(self._engine) as connection:
            audit.add(connection, entry)

    def audit(self, limit: int, cursor: str | None = None) -> Page[AuditEntry]:
        """Return the trail, the newest first."""
        with reading(self._engine) as connection:
            return audit.page(connection, limit, cursor)

    # Inside

    def _make_token(
        self,
        name: str,
        role: Role,
        *,
        agent_id: str | None,
        once: bool = False,
        expires_at: datetime | None = None,
    ) -> MadeToken:
        token = Token(
            id=tokens.new_token_id(),
            name=name,
            role=role,
            once=once,
            agent_id=agent_id,
            created_at=self._clock.now(),
            expires_at=expires_at,
        )
        return MadeToken(token=token, secret=tokens.new_secret())

    def _find_cached(self, digest: str) -> Principal | None:
        with self._lock:
            principal, until_ns = self._cache.known.get(digest, (None, 0))
        return principal if self._clock.monotonic_ns() < until_ns else None

    def _looked_up(self, digest: str, address: str) -> Principal:
        age, begin_ns, now = self._cache.age, self._clock.monotonic_ns(), self._clock.now()
        with reading(self._engine) as connection:
            token = tokens.by_hash(connection, digest)
        why = _trouble(token, now)
        if token is None or why:
            self._failures.add(address, digest)
            raise AccessError(why, hint="`prony tokens add NAME --role ROLE` makes one", code="unauthorized")
        principal = Principal(
            name=token.name, role=token.role, token_id=token.id, agent_id=token.agent_id, once=token.once
        )
        left_s = (token.expires_at - now).total_seconds() if token.expires_at else math.inf
        with self._lock:
            if not token.once and age == self._cache.age:
                self._remember(digest, principal, begin_ns + min(_CACHE_NS, round(min(left_s, 60) * 10**9)))
            if token.last_used_at is None or now - token.last_used_at >= _NOTED_FOR:
                self._cache.used.add(token.id)
        return principal

    def _remember(self, digest: str, principal: Principal, until_ns: int) -> None:
        if len(self._cache.known) >= _MOST_CACHED:
            self._cache.known.clear()
        self._cache.known[digest] = (principal, until_ns)

    def _forget_known(self) -> None:
        with self._lock:
            self._cache.known.clear()
            self._cache.age += 1

    def _note_uses(self, *, at_once: bool = False) -> None:
        """Write down which tokens were used, many in one transaction: thousands of agents may poll."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            noted_ns = self._cache.noted_ns
            if not self._cache.used or (not at_once and noted_ns is not None and now_ns - noted_ns < _NOTING_NS):
                return
            used, self._cache.used = self._cache.used, set()
            self._cache.noted_ns = now_ns
        now = self._clock.now()
        # A full disk or a busy database is no reason to turn anybody away: the note is only for people to read.
        with suppress(StoreError), writing(self._engine) as connection:
            tokens.touch(connection, used, now, before=now - _NOTED_FOR)


def _trouble(token: Token | None, now: datetime) -> str:
    """Return why a token is not taken, or nothing. Only its holder is told, who has its secret already."""
    if token is None:
        return "this token is not known here"
    if token.revoked_at is not None:
        return "this one-time token was used already" if token.once else "this token was revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return f"this token expired at {token.expires_at:%Y-%m-%d %H:%M} UTC"
    return ""


def ensure_owner_token(home: Home, access: Access) -> str:
    """Return the secret that the home's file and the database both know.

    It stays the same over restarts. One that was revoked is replaced, and so is one that others could have read.
    """
    with hold_file_lock(home.lock):
        secret = read_owner_token(home)
        if secret is not None and not is_private(home):
            access.drop_owner(secret)
            secret = None
        if secret is None or not access.keep_owner(secret):
            secret = tokens.new_secret()
            write_owner_token(home, secret)
            access.keep_owner(secret)
    return secret
