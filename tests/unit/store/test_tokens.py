"""Asked of both databases: secrets are kept as hashes, a one-time token is spent once, lists come in pages."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import Engine, text

from prony.errors import InputError, NotFoundError
from prony.model.access import AuditEntry, Token
from prony.store import audit, tokens
from prony.store.database import connect_database, reading, writing
from prony.store.home import Home
from prony.store.schema import upgrade

NOW = datetime(2026, 11, 15, 6, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


@pytest.fixture
def engine(home: Home, database_url: str) -> Iterator[Engine]:
    made = connect_database(home.create(), database_url)
    upgrade(made, home)
    yield made
    made.dispose()


def token(token_id: str, **details: object) -> Token:
    return Token.read({"id": token_id, "name": "nightly", "role": "viewer", "created_at": NOW} | details)


def kept(engine: Engine, *made: Token) -> None:
    with writing(engine) as connection:
        for one in made:
            tokens.add(connection, one, tokens.hash_secret(f"secret of {one.id}"))


def entry(number: int, at: datetime = NOW, **details: object) -> AuditEntry:
    return AuditEntry.read(
        {"id": 0, "at": at, "who": "ann", "role": "admin", "action": "cancel", "target": f"job-{number}", "status": 200}
        | details
    )


def test_a_secret_is_long_random_and_recognizable() -> None:
    made = {tokens.new_secret() for _ in range(1000)}
    assert len(made) == 1000
    assert {len(secret) for secret in made} == {len("prony_") + 43}
    assert all(secret.startswith("prony_") for secret in made)


def test_the_database_holds_no_secret(engine: Engine) -> None:
    secret = tokens.new_secret()
    with writing(engine) as connection:
        tokens.add(connection, token("a1"), tokens.hash_secret(secret))
        rows = connection.execute(text("SELECT * FROM token")).all()
    assert len(rows) == 1
    assert secret.removeprefix("prony_") not in str(rows)


def test_a_token_is_found_by_its_hash_and_comes_back_whole(engine: Engine) -> None:
    made = token("a1", role="agent", once=True, expires_at=LATER)
    kept(engine, made)
    with reading(engine) as connection:
        assert tokens.by_hash(connection, tokens.hash_secret("secret of a1")) == made
        assert tokens.by_hash(connection, tokens.hash_secret("another")) is None


def test_a_one_time_token_is_spent_once_however_many_try(engine: Engine) -> None:
    kept(engine, token("a1", role="agent", once=True))
    together = Barrier(8)

    def spend(number: int) -> bool:
        together.wait()
        with writing(engine) as connection:
            return tokens.use_up(connection, "a1", f"agent-{number}", NOW)

    with ThreadPoolExecutor(8) as pool:
        spent = list(pool.map(spend, range(8)))
    assert spent.count(True) == 1
    with reading(engine) as connection:
        found = tokens.by_hash(connection, tokens.hash_secret("secret of a1"))
    assert found is not None
    assert (found.revoked_at, found.agent_id) == (NOW, f"agent-{spent.index(True)}")


@pytest.mark.parametrize(
    "details", [{"once": False}, {"once": True, "expires_at": NOW}, {"once": True, "revoked_at": NOW}], ids=str
)
def test_what_is_no_good_one_time_token_cannot_be_spent(engine: Engine, details: dict[str, object]) -> None:
    kept(engine, token("a1", role="agent", **details))
    with writing(engine) as connection:
        assert not tokens.use_up(connection, "a1", "agent-1", NOW)


def test_a_revoked_token_is_not_good_and_stays_in_the_list(engine: Engine) -> None:
    kept(engine, token("a1"))
    with writing(engine) as connection:
        assert tokens.is_good(connection, "a1", NOW)
        tokens.revoke(connection, "a1", NOW)
        tokens.revoke(connection, "a1", LATER)
        assert not tokens.is_good(connection, "a1", NOW)
        assert [one.revoked_at for one in tokens.page(connection, 10, None).items] == [NOW]


@pytest.mark.parametrize("token_id", ["none", "", "a\0b", "a1'; DROP TABLE token; --", "ä"])
def test_an_unknown_token_cannot_be_revoked(engine: Engine, token_id: str) -> None:
    with pytest.raises(NotFoundError, match="no token"), writing(engine) as connection:
        tokens.revoke(connection, token_id, NOW)


def test_all_tokens_of_an_agent_end_together_and_no_other(engine: Engine) -> None:
    mine = [token(f"a{number}", role="agent", agent_id="agent-1") for number in range(2)]
    kept(engine, *mine, token("b1", role="agent", agent_id="agent-2"), token("c1"))
    with writing(engine) as connection:
        assert tokens.revoke_agent(connection, "agent-1", NOW) == 2
        assert tokens.revoke_agent(connection, "agent-1", NOW) == 0
        assert tokens.is_good(connection, "b1", NOW)
        assert tokens.is_good(connection, "c1", NOW)


def test_a_use_is_noted_unless_it_was_noted_of_late(engine: Engine) -> None:
    kept(engine, token("a1"), token("a2", last_used_at=NOW), token("a3"))
    with writing(engine) as connection:
        tokens.touch(connection, {"a1", "a2"}, LATER, before=NOW - timedelta(seconds=1))
        used = {one.id: one.last_used_at for one in tokens.page(connection, 10, None).items}
    assert used == {"a1": LATER, "a2": NOW, "a3": None}


def test_tokens_come_in_pages_with_the_newest_first(engine: Engine) -> None:
    # Several of one instant: the id decides.
    made = [token(f"a{number}", created_at=NOW + timedelta(seconds=number // 2)) for number in range(7)]
    kept(engine, *made)
    seen: list[str] = []
    cursor: str | None = None
    with reading(engine) as connection:
        while True:
            page = tokens.page(connection, 3, cursor)
            seen += [one.id for one in page.items]
            cursor = page.next
            if cursor is None:
                break
    assert seen == [f"a{number}" for number in reversed(range(7))]


@pytest.mark.parametrize("cursor", ["", "nowhere", "-1", "1e3", "9" * 40, "٣", "a\0"])
def test_a_cursor_from_elsewhere_is_refused(engine: Engine, cursor: str) -> None:
    with reading(engine) as connection:
        with pytest.raises(InputError, match="is not a"):
            tokens.page(connection, 3, cursor)
        with pytest.raises(InputError, match="is not a"):
            audit.page(connection, 3, cursor)


def test_the_trail_comes_in_pages_with_the_newest_first(engine: Engine) -> None:
    with writing(engine) as connection:
        for number in range(7):
            audit.add(connection, entry(number))
        first = audit.page(connection, 3, None)
        second = audit.page(connection, 3, first.next)
        third = audit.page(connection, 3, second.next)
    assert [one.target for page in (first, second, third) for one in page.items] == [
        f"job-{number}" for number in reversed(range(7))
    ]
    assert third.next is None
    assert first.items[0].at == NOW


def test_what_a_stranger_sent_is_kept_short_and_printable(engine: Engine) -> None:
    with writing(engine) as connection:
        audit.add(connection, entry(1, target="\033[2J\0\n" + "x" * 5000, who="w" * 500, address="a" * 500))
        found = audit.page(connection, 1, None).items[0]
    assert found.target.isprintable()
    assert (len(found.target), len(found.who), len(found.address)) == (1000, 128, 64)
