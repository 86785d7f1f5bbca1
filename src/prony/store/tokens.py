"""Rows of tokens: add, find, use, revoke and list them in an open transaction."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, or_, select, update

from prony.errors import NotFoundError
from prony.model.access import Token
from prony.model.queue import Page
from prony.store import tables
from prony.store.cursors import bad_cursor

PREFIX = "prony_"  # so that a secret is known for one wherever it leaks to
_TABLE = tables.token
_COLUMNS = [column for column in _TABLE.c if column.name != "hash"]


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def new_token_id() -> str:
    return secrets.token_hex(6)


def hash_secret(secret: str) -> str:
    """Return what is kept of a secret.

    One round without salt is enough: 256 random bits can be neither guessed nor tabulated, as a password could.
    The row is looked up by the hash, so that the time which that takes tells nothing about a secret either.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def add(connection: Connection, token: Token, digest: str) -> None:
    connection.execute(insert(_TABLE).values(token.model_dump() | {"role": token.role.value, "hash": digest}))


def by_hash(connection: Connection, digest: str) -> Token | None:
    """Return the token of this hash, whether it is good or not."""
    row = connection.execute(select(*_COLUMNS).where(_TABLE.c.hash == digest)).first()
    return None if row is None else _token(row)


def is_good(connection: Connection, token_id: str, now: datetime) -> bool:
    """Tell whether a token may still be used; until the transaction ends, nobody else revokes it."""
    query = select(_TABLE.c.id).where(_TABLE.c.id == token_id, _good(now)).with_for_update()
    return connection.execute(query).first() is not None


def use_up(connection: Connection, token_id: str, agent_id: str, now: datetime) -> bool:
    """Spend a one-time token on an agent; False when it was spent, revoked or has expired.

    One statement: of two that try at once, the second waits for the row and then finds it spent.
    """
    spending = update(_TABLE).where(_TABLE.c.id == token_id, _TABLE.c.once, _good(now))
    done = connection.execute(spending.values(revoked_at=now, last_used_at=now, agent_id=agent_id))
    return bool(done.rowcount == 1)


def revoke(connection: Connection, token_id: str, now: datetime) -> None:
    """End a token; one that has ended stays as it is."""
    if _created_at(connection, token_id) is None:
        raise NotFoundError(f"no token {token_id!r}", hint="`prony tokens list` shows what there is")
    connection.execute(
        update(_TABLE).where(_TABLE.c.id == token_id, _TABLE.c.revoked_at.is_(None)).values(revoked_at=now)
    )


def revoke_agent(connection: Connection, agent_id: str, now: datetime) -> int:
    """End every token that an agent has; return how many there were."""
    ending = update(_TABLE).where(_TABLE.c.agent_id == agent_id, _TABLE.c.revoked_at.is_(None))
    return int(connection.execute(ending.values(revoked_at=now)).rowcount)


def touch(connection: Connection, token_ids: Collection[str], now: datetime, *, before: datetime) -> None:
    """Note that tokens were used, unless that was noted after `before`."""
    stale = or_(_TABLE.c.last_used_at.is_(None), _TABLE.c.last_used_at <= before)
    connection.execute(update(_TABLE).where(_TABLE.c.id.in_(token_ids), stale).values(last_used_at=now))


def page(connection: Connection, limit: int, cursor: str | None) -> Page[Token]:
    """Return tokens, the newest first, those that have ended with them; the cursor is the last one's id."""
    limit = max(1, limit)
    query = select(*_COLUMNS).order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc()).limit(limit + 1)
    if cursor is not None:
        after = _created_at(connection, cursor)
        if after is None:
            raise bad_cursor(cursor)
        same = and_(_TABLE.c.created_at == after, _TABLE.c.id < cursor)
        query = query.where(or_(_TABLE.c.created_at < after, same))
    found = [_token(row) for row in connection.execute(query)]
    return Page[Token](items=tuple(found[:limit]), next=found[limit - 1].id if len(found) > limit else None)


def _created_at(connection: Connection, token_id: str) -> datetime | None:
    """Return when a token was made, None for what is no token's id."""
    if not (token_id.isascii() and token_id.isalnum()):  # a database may fail at letters that no id has
        return None
    return connection.execute(select(_TABLE.c.created_at).where(_TABLE.c.id == token_id)).scalar()


def _good(now: datetime) -> ColumnElement[bool]:
    unexpired = or_(_TABLE.c.expires_at.is_(None), _TABLE.c.expires_at > now)
    return and_(_TABLE.c.revoked_at.is_(None), unexpired)


def _token(row: Row[Any]) -> Token:
    return Token.read(row._mapping)
