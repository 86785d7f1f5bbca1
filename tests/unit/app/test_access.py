"""Who may do what: asked of both databases, and of a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import Engine, event

from prony.app.access import Access, open_access, require_agent, require_role
from prony.errors import AccessError, InputError, NotFoundError
from prony.model.access import AuditEntry, MadeToken, NewToken, Principal, Role
from prony.store.database import connect_database
from prony.store.home import home
from prony.store.schema import upgrade

HERE = "192.0.2.7"
ELSEWHERE = "192.0.2.8"


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic_ns(self) -> int:
        return 10**9 + int(self.passed_s * 10**9)

    def now(self) -> datetime:
        return datetime(2026, 11, 15, 6, 0, tzinfo=UTC) + timedelta(seconds=self.passed_s)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    place = home().create()
    made = connect_database(place, database_url)
    upgrade(made, place)
    yield made
    made.dispose()


@pytest.fixture
def access(engine: Engine, clock: Clock) -> Access:
    return Access(engine, clock)


def made(access: Access, role: str, *, once: bool = False, expires_in_s: float | None = None) -> MadeToken:
    return access.add_token(NewToken(name="someone", role=Role(role), once=once, expires_in_s=expires_in_s))


def code_of(access: Access, secret: str, address: str = HERE) -> str:
    """Return how an attempt ends: `ok`, or the code of its refusal."""
    try:
        access.authenticate(secret, address)
    except AccessError as exc:
        return exc.code if exc.hint else "no hint"
    return "ok"


def statements(engine: Engine) -> list[str]:
    """Return a list that grows with every statement that reaches the database."""
    seen: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    return seen


# Roles


@pytest.mark.parametrize(
    ("has", "may"),
    [
        ("admin", {"admin", "submitter", "viewer", "agent"}),
        ("submitter", {"submitter", "viewer"}),
        ("viewer", {"viewer"}),
        ("agent", {"agent"}),
    ],
)
def test_a_role_includes_those_below_it_and_an_agent_is_apart(has: str, may: set[str]) -> None:
    principal = Principal(name="x", role=Role(has))
    for role in Role:
        if role.value in may:
            require_role(principal, role)
            continue
        with pytest.raises(AccessError, match=f"needs the role {role.value}") as caught:
            require_role(principal, role)
        assert caught.value.code == "forbidden"


def test_a_one_time_token_may_enrol_and_nothing_else() -> None:
    principal = Principal(name="x", role=Role.AGENT, token_id="t", once=True)
    require_role(principal, Role.AGENT, enrolling=True)
    with pytest.raises(AccessError, match="only enrol"):
        require_role(principal, Role.AGENT)
    with pytest.raises(AccessError, match="only enrol"):
        require_agent(principal, "agent-1")


def test_an_agent_acts_for_itself_alone() -> None:
    require_agent(Principal(name="x", role=Role.AGENT, agent_id="agent-1"), "agent-1")
    require_agent(Principal(name="x", role=Role.ADMIN), "agent-1")
    for principal in (
        Principal(name="x", role=Role.AGENT, agent_id="agent-2"),
        Principal(name="x", role=Role.AGENT),
        Principal(name="x", role=Role.SUBMITTER),
    ):
        with pytest.raises(AccessError):
            require_agent(principal, "agent-1")


# Tokens


def test_a_secret_says_who_asks(access: Access) -> None:
    token = made(access, "submitter")
    found = access.authenticate(token.secret, HERE)
    assert found == Principal(name="someone", role=Role.SUBMITTER, token_id=token.token.id)


@pytest.mark.parametrize("secret", ["", "prony_", "prony_" + "x" * 43, "ä\udc80", "x" * 100_000, "' OR 1=1 --"])
def test_what_is_no_secret_is_refused(access: Access, secret: str) -> None:
    made(access, "admin")
    assert code_of(access, secret) == "unauthorized"


@pytest.mark.parametrize("role", ["admin", "submitter", "viewer"])
def test_a_one_time_token_is_an_agents(access: Access, role: str) -> None:
    with pytest.raises(InputError, match="one-time"):
        made(access, role, once=True)


def test_a_revoked_token_stops_at_once(access: Access) -> None:
    token = made(access, "viewer")
    assert code_of(access, token.secret) == "ok"
    access.revoke_token(token.token.id)
    assert code_of(access, token.secret) == "unauthorized"
    with pytest.raises(NotFoundError):
        access.revoke_token("none")


def test_a_token_that_another_server_revoked_stops_within_5_s(access: Access, engine: Engine, clock: Clock) -> None:
    token = made(access, "viewer")
    assert code_of(access, token.secret) == "ok"
    Access(engine, clock).revoke_token(token.token.id)
    clock.passed_s += 5
    assert code_of(access, token.secret) == "unauthorized"


def test_a_token_ends_when_it_expires_though_it_was_used_just_before(access: Access, clock: Clock) -> None:
    token = made(access, "viewer", expires_in_s=60)
    clock.passed_s = 59
    assert code_of(access, token.secret) == "ok"
    clock.passed_s = 60
    with pytest.raises(AccessError, match="expired at 2026-11-15 06:01 UTC"):
        access.authenticate(token.secret, HERE)


def test_who_polls_does_not_reach_the_database_each_time(access: Access, engine: Engine, clock: Clock) -> None:
    token = made(access, "viewer")
    access.authenticate(token.secret, HERE)
    seen = statements(engine)
    for _ in range(100):
        access.authenticate(token.secret, HERE)
    assert seen == []
    clock.passed_s += 5
    access.authenticate(token.secret, HERE)
    assert len([text for text in seen if text.startswith("SELECT")]) == 1


def test_last_use_is_noted_once_a_minute(access: Access, engine: Engine, clock: Clock) -> None:
    token = made(access, "viewer")
    seen = statements(engine)
    for _ in range(120):
        access.authenticate(token.secret, HERE)
        clock.passed_s += 1
    assert len([text for text in seen if text.startswith("UPDATE")]) == 2
    last = access.tokens(10).items[0].last_used_at
    assert last is not None
    assert clock.now() - last <= timedelta(seconds=75)


def test_the_uses_of_many_tokens_are_noted_together(access: Access, engine: Engine, clock: Clock) -> None:
    all_made = [made(access, "agent") for _ in range(50)]
    access.authenticate(made(access, "viewer").secret, HERE)
    seen = statements(engine)
    for token in all_made:
        access.authenticate(token.secret, HERE)
    clock.passed_s += 11
    access.authenticate(all_made[0].secret, HERE)
    assert len([text for text in seen if text.startswith("UPDATE")]) == 1
    assert all(token.last_used_at for token in access.tokens(100).items)


def test_tokens_are_listed_without_their_secrets(access: Access) -> None:
    token = made(access, "viewer")
    page = access.tokens(10)
    assert page.items == (token.token,)
    assert token.secret not in page.model_dump_json()


# Enrolment


def test_a_one_time_token_turns_into_the_agents_own(access: Access) -> None:
    token = made(access, "agent", once=True)
    principal = access.authenticate(token.secret, HERE)
    secret = access.exchange(principal, "agent-1", "rack-7")
    assert secret is not None
    own = access.authenticate(secret, HERE)
    assert (own.name, own.role, own.agent_id, own.once) == ("rack-7", Role.AGENT, "agent-1", False)
    assert code_of(access, token.secret) == "unauthorized"
    with pytest.raises(AccessError, match="used already") as caught:
        access.exchange(principal, "agent-2", "rack-8")
    assert caught.value.code == "unauthorized"


def test_of_many_agents_with_one_one_time_token_one_is_let_in(access: Access) -> None:
    principal = access.authenticate(made(access, "agent", once=True).secret, HERE)
    together = Barrier(6)

    def enrol(number: int) -> str | None:
        together.wait()
        try:
            return access.exchange(principal, f"agent-{number}", f"rack-{number}")
        except AccessError:
            return None

    with ThreadPoolExecutor(6) as pool:
        secrets = [secret for secret in pool.map(enrol, range(6)) if secret]
    assert len(secrets) == 1
    assert access.authenticate(secrets[0], HERE).role is Role.AGENT
    assert len([token for token in access.tokens(100).items if not token.once]) == 1


def test_a_lasting_enrolment_token_lets_in_many_until_it_is_revoked(access: Access) -> None:
    token = made(access, "agent")
    principal = access.authenticate(token.secret, HERE)
    secrets = {access.exchange(principal, f"agent-{number}", "x") for number in range(3)}
    assert len(secrets - {None}) == 3
    access.revoke_token(token.token.id)
    with pytest.raises(AccessError, match="no longer"):
        access.exchange(principal, "agent-4", "x")


def test_an_agent_that_comes_with_its_own_token_keeps_it(access: Access) -> None:
    principal = access.authenticate(made(access, "agent", once=True).secret, HERE)
    secret = access.exchange(principal, "agent-1", "x")
    assert secret is not None
    own = access.authenticate(secret, HERE)
    assert access.exchange(own, "agent-1", "x") is None
    assert code_of(access, secret) == "ok"
    with pytest.raises(AccessError, match="agent-2 itself"):
        access.exchange(own, "agent-2", "x")


def test_an_agent_that_lost_its_token_gets_another_and_the_lost_one_ends(access: Access) -> None:
    secrets = []
    for _ in range(2):
        principal = access.authenticate(made(access, "agent", once=True).secret, HERE)
        secrets.append(access.exchange(principal, "agent-1", "x") or "")
    assert [code_of(access, secret) for secret in secrets] == ["unauthorized", "ok"]


def test_where_no_token_is_asked_for_none_is_made(access: Access) -> None:
    assert access.exchange(Principal(name="loopback", role=Role.ADMIN), "agent-1", "x") is None
    assert access.tokens(10).items == ()


@pytest.mark.parametrize("role", ["submitter", "viewer"])
def test_a_persons_token_enrols_no_agent(access: Access, role: str) -> None:
    principal = access.authenticate(made(access, role).secret, HERE)
    with pytest.raises(AccessError):
        access.exchange(principal, "agent-1", "x")


def test_an_agent_that_was_removed_is_turned_away(access: Access) -> None:
    secret = access.exchange(access.authenticate(made(access, "agent", once=True).secret, HERE), "agent-1", "x")
    assert secret is not None
    assert code_of(access, secret) == "ok"
    assert access.revoke_agent("agent-1") == 1
    assert code_of(access, secret) == "unauthorized"


# Failures


def test_after_ten_failures_an_address_is_refused_for_a_minute(access: Access, engine: Engine, clock: Clock) -> None:
    assert [code_of(access, f"wrong {number}") for number in range(11)] == ["unauthorized"] * 11
    seen = statements(engine)
    assert code_of(access, "wrong") == "too_many"
    assert seen == []
    assert code_of(access, "wrong", ELSEWHERE) == "unauthorized"
    clock.passed_s += 59
    with pytest.raises(AccessError) as caught:
        access.authenticate(made(access, "viewer").secret, HERE)
    assert caught.value.hint.startswith("try again in 1 s")
    clock.passed_s += 1
    assert code_of(access, made(access, "viewer").secret) == "ok"


def test_failures_that_are_spread_out_are_not_too_many(access: Access, clock: Clock) -> None:
    for _ in range(50):
        assert code_of(access, "wrong") == "unauthorized"
        clock.passed_s += 6.1


def test_a_good_neighbour_is_heard_while_another_fails(access: Access, clock: Clock) -> None:
    good, gone = made(access, "agent"), made(access, "agent")
    assert (code_of(access, good.secret), code_of(access, gone.secret)) == ("ok", "ok")
    access.revoke_token(gone.token.id)
    for _ in range(12):
        code_of(access, gone.secret)
    assert code_of(access, gone.secret) == "too_many"
    clock.passed_s += 5
    assert code_of(access, good.secret) == "ok"


def test_a_whole_ipv6_network_counts_as_one(access: Access) -> None:
    codes = [code_of(access, "wrong", f"2001:db8::{number:x}") for number in range(12)]
    assert codes[-1] == "too_many"
    assert code_of(access, "wrong", "2001:db8:0:1::1") == "unauthorized"
    codes = [code_of(access, "wrong", f"::ffff:192.0.2.{number}") for number in range(12)]
    assert "too_many" not in codes


def test_no_token_at_all_is_no_guess(access: Access) -> None:
    assert {code_of(access, "") for _ in range(30)} == {"unauthorized"}


def test_failures_of_ever_more_addresses_do_not_fill_the_memory(access: Access) -> None:
    failures = access._failures
    for number in range(12_000):
        failures.add(f"10.{number >> 8}.{number & 255}.1", "x")
        failures.trust(f"digest {number}")
    assert len(failures._failed) == 10_000
    assert len(failures._trusted) <= 20_000


# The trail


def entry(target: str, at: datetime) -> AuditEntry:
    return AuditEntry(id=0, at=at, who="ann", role="admin", action="cancel", target=target, address=HERE, status=200)


def test_what_was_done_is_told_newest_first(access: Access, clock: Clock) -> None:
    for number in range(5):
        access.record(entry(f"job-{number}", clock.now()))
    first = access.audit(3)
    assert [one.target for one in first.items] == ["job-4", "job-3", "job-2"]
    assert [one.target for one in access.audit(3, first.next).items] == ["job-1", "job-0"]


# Without a server


def test_a_token_can_be_made_before_any_server_runs() -> None:
    with open_access() as access:
        secret = made(access, "admin").secret
    with open_access() as access:
        assert access.authenticate(secret, HERE).role is Role.ADMIN
