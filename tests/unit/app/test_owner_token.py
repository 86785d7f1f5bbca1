"""The owner's token: made once, kept, private; replaced where it was revoked or others could read it."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator

import pytest

from prony.app.access import Access, ensure_owner_token
from prony.errors import AccessError
from prony.model.access import NewToken, Role
from prony.ports.clock import SystemClock
from prony.store.database import connect_database
from prony.store.home import Home
from prony.store.home import home as found_home
from prony.store.owner_token import owner_token_file, read_owner_token, write_owner_token
from prony.store.schema import upgrade

HERE = "127.0.0.1"


@pytest.fixture
def home() -> Home:
    return found_home().create()


@pytest.fixture
def access(home: Home) -> Iterator[Access]:
    engine = connect_database(home)
    upgrade(engine, home)
    yield Access(engine, SystemClock())
    engine.dispose()


def test_it_is_an_admin_s_and_only_its_user_can_read_it(home: Home, access: Access) -> None:
    secret = ensure_owner_token(home, access)
    assert stat.S_IMODE(owner_token_file(home).stat().st_mode) == 0o600
    assert owner_token_file(home).read_text() == f"{secret}\n"
    principal = access.authenticate(secret, HERE)
    assert (principal.name, principal.role) == ("owner", Role.ADMIN)


def test_it_stays_the_same_over_restarts_and_is_one_token(home: Home, access: Access) -> None:
    assert ensure_owner_token(home, access) == ensure_owner_token(home, access)
    assert [one.name for one in access.tokens(10).items] == ["owner"]


def test_a_new_database_learns_the_one_that_is_there(home: Home, access: Access) -> None:
    write_owner_token(home, "prony_earlier")
    assert ensure_owner_token(home, access) == "prony_earlier"
    assert access.authenticate("prony_earlier", HERE).role is Role.ADMIN


def test_where_it_was_revoked_the_next_start_makes_another(home: Home, access: Access) -> None:
    old = ensure_owner_token(home, access)
    access.revoke_token(access.tokens(1).items[0].id)
    assert ensure_owner_token(home, access) != old
    with pytest.raises(AccessError, match="revoked"):
        access.authenticate(old, HERE)


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing on Windows")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_what_others_could_read_is_ended_and_replaced(home: Home, access: Access, mode: int) -> None:
    old = ensure_owner_token(home, access)
    owner_token_file(home).chmod(mode)
    new = ensure_owner_token(home, access)
    assert new != old
    assert stat.S_IMODE(owner_token_file(home).stat().st_mode) == 0o600
    with pytest.raises(AccessError, match="revoked"):
        access.authenticate(old, HERE)


def test_a_token_of_somebody_else_does_not_become_the_owner_s(home: Home, access: Access) -> None:
    viewer = access.add_token(NewToken(name="ann", role=Role.VIEWER)).secret
    write_owner_token(home, viewer)
    assert ensure_owner_token(home, access) != viewer
    assert access.authenticate(viewer, HERE).role is Role.VIEWER


def test_where_none_was_written_there_is_none(home: Home) -> None:
    assert read_owner_token(home) is None


def test_wrong_tokens_from_this_machine_do_not_keep_its_owner_out(home: Home, access: Access) -> None:
    secret = ensure_owner_token(home, access)
    for number in range(20):
        with pytest.raises(AccessError):
            access.authenticate(f"prony_wrong{number}", HERE)
    assert access.authenticate(secret, HERE).name == "owner"
