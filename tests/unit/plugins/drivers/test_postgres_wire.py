"""Answers of PostgreSQL are framed right wherever the network cuts them, and logging in follows the standards."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from driver_lines import MemoryLine
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.errors import InputError
from prony.plugins.drivers.postgres import messages
from prony.plugins.drivers.postgres.messages import Login
from prony.plugins.drivers.postgres.wire import PostgresWire
from prony.ports.driver import Cause

SETTINGS = {"user": "u", "database": "d"}
OK = [("done", 0, Cause.OK)]
IDLE, IN_BLOCK, FAILED = (messages.message(b"Z", status) for status in (b"I", b"T", b"E"))
BOUND = messages.message(b"2", b"")


def complete(tag: bytes) -> bytes:
    return messages.message(b"C", tag + b"\x00")


def error(state: str, severity: str = "ERROR") -> bytes:
    return messages.message(b"E", f"S{severity}\x00C{state}\x00Mno\x00\x00".encode())


def row(*values: bytes) -> bytes:
    return messages.message(
        b"D", struct.pack(">H", len(values)) + b"".join(struct.pack(">I", len(value)) + value for value in values)
    )


def serving(**options: Any) -> MemoryLine:
    """Return a line that has logged in."""
    line = MemoryLine(PostgresWire, {"settings": SETTINGS, **options})
    line.wire.connection_made()
    assert line.fed(messages.message(b"R", struct.pack(">I", 0)) + IDLE, [3]) == [("ready",)]
    line.written.clear()
    return line


@given(st.lists(st.binary(max_size=60), max_size=6), st.lists(st.integers(0, 500), max_size=12))
@settings(max_examples=count_examples(200), deadline=None)
def test_a_reply_is_done_once_with_its_last_byte(values: list[bytes], cuts: list[int]) -> None:
    line = serving()
    line.wire.send(b"...")
    # Values may hold what looks like the end.
    rows = b"".join(row(value, IDLE) for value in values)
    whole = BOUND + rows + complete(b"SELECT 1") + messages.message(b"N", b"SNOTICE\x00\x00") + IDLE
    assert line.fed(whole[:-1], cuts) == []
    assert line.fed(whole[-1:], []) == OK


@given(st.lists(st.integers(0, 40), max_size=4), st.booleans())
def test_an_answer_that_was_seen_before_is_known_whole_and_not_in_part(cuts: list[int], must_match: bool) -> None:
    line = serving(must_match=must_match)
    good, bad = BOUND + complete(b"UPDATE 1") + IDLE, BOUND + complete(b"UPDATE 0") + IDLE
    missed = [("done", 0, Cause.CONTENT)] if must_match else OK
    for whole, told in ((good, OK), (good, OK), (bad, missed), (bad, missed), (good, OK)):
        line.wire.send(b"...")
        assert line.fed(whole, cuts) == told
    line.wire.send(b"...")
    # The same bytes as an answer, within a row.
    assert line.fed(row(good)[:-40], []) == []
    assert line.fed(row(good)[-40:], []) == []
    assert line.fed(complete(b"SELECT 1") + IDLE, []) == OK


def test_an_error_is_a_status_with_its_class_and_the_line_goes_on() -> None:
    line = serving()
    line.wire.send(b"...")
    assert line.fed(error("23505") + IDLE, [4]) == [("done", 23, Cause.STATUS)]
    line.wire.send(b"...")
    assert line.fed(BOUND + complete(b"INSERT 0 1") + IDLE, []) == OK


def test_an_error_in_a_transaction_is_rolled_back_before_the_next_request() -> None:
    line = serving(steps=3)
    parts = [b"begin", b"work", b"end"]
    line.wire.send(messages.join_round_trips(parts))
    assert line.written == [b"begin"]
    assert line.fed(complete(b"BEGIN") + IN_BLOCK, []) == []
    assert line.written == [b"begin", b"work"]
    assert line.fed(error("40001") + FAILED, []) == []
    assert line.written[2:] == [messages.query("ROLLBACK")]
    assert line.fed(complete(b"ROLLBACK") + IDLE, [6]) == [("done", 40, Cause.STATUS)]
    line.written.clear()
    line.wire.send(messages.join_round_trips(parts))
    assert line.fed(complete(b"BEGIN") + IN_BLOCK, []) == []
    assert line.fed(complete(b"UPDATE 1") + IN_BLOCK, []) == []
    assert line.fed(complete(b"COMMIT") + IDLE, []) == OK
    assert line.written == parts


def test_a_transaction_left_open_is_rolled_back_and_no_success() -> None:
    line = serving()
    line.wire.send(b"begin")
    assert line.fed(complete(b"BEGIN") + IN_BLOCK, []) == []
    assert line.fed(complete(b"ROLLBACK") + IDLE, []) == [("done", 0, Cause.CONTENT)]


@pytest.mark.parametrize("tag", [b"UPDATE 0", b"SELECT 0"])
def test_nothing_found_is_wrong_content_only_where_a_row_must_match(tag: bytes) -> None:
    for must_match, cause in ((True, Cause.CONTENT), (False, Cause.OK)):
        line = serving(must_match=must_match)
        line.wire.send(b"...")
        assert line.fed(complete(tag) + IDLE, []) == [("done", 0, cause)]
    line = serving(must_match=True)
    line.wire.send(b"...")
    assert line.fed(complete(b"SELECT 10") + IDLE, []) == OK


def test_statements_are_prepared_before_requests_come_and_a_wrong_one_fails_the_line() -> None:
    for reply, told in ((messages.message(b"1", b"") * 2, ("ready",)), (error("42601"), ("failed", Cause.STATUS))):
        line = MemoryLine(PostgresWire, {"settings": SETTINGS, "statements": ["SELECT 1", "SELECT $1"]})
        line.wire.connection_made()
        assert line.fed(messages.message(b"R", struct.pack(">I", 0)) + IDLE, []) == []
        assert (
            line.written[-1]
            == messages.parse_message("s0", "SELECT 1") + messages.parse_message("s1", "SELECT $1") + messages.SYNC
        )
        assert line.fed(reply + IDLE, []) == [told]


@pytest.mark.parametrize("nonsense", [b"HTTP/1.1 200 OK\r\n", b"Z\x00\x00\x00\x01", b"D\xff\xff\xff\xff."])
def test_nonsense_is_malformed(nonsense: bytes) -> None:
    line = serving()
    line.wire.send(b"...")
    assert ("failed", Cause.MALFORMED) in line.fed(nonsense, [])


def test_who_is_not_let_in_is_refused() -> None:
    line = MemoryLine(PostgresWire, {"settings": SETTINGS})
    line.wire.connection_made()
    assert line.fed(error("53300", "FATAL"), []) == [("failed", Cause.REFUSED)]
    line = MemoryLine(PostgresWire, {"settings": SETTINGS})
    line.wire.connection_made()
    assert line.fed(messages.message(b"R", struct.pack(">I", 3)), []) == [("failed", Cause.REFUSED)]


def test_an_end_says_what_came_before_it() -> None:
    line = serving()
    line.wire.send(b"...")
    assert line.wire.eof_received() == Cause.RESET
    line.fed(BOUND, [])
    assert line.wire.eof_received() == Cause.TRUNCATED
    line.fed(error("57P01", "FATAL"), [])
    assert (line.wire.eof_received(), line.status) == (Cause.STATUS, 57)


@pytest.mark.parametrize(("state", "number"), [("40001", 40), ("57014", 57), ("08006", 8), ("XX000", 1321), ("", 0)])
def test_a_class_of_errors_has_a_number_that_fits_the_column(state: str, number: int) -> None:
    assert messages.state_number(state) == number < 2**15


def test_scram_is_that_of_the_standard() -> None:
    """The exchange of RFC 7677, whose user is in the first message there; PostgreSQL leaves that empty."""
    login = Login("user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    offered = struct.pack(">I", 10) + b"SCRAM-SHA-256\x00\x00"
    assert b"n,,n=,r=rOprNGfwEbeRWgbNEkqO" in login.answer(offered)
    login._first = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    said = login.answer(struct.pack(">I", 11) + challenge.encode())
    assert said.endswith(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    proof = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert login.answer(struct.pack(">I", 12) + proof) == b""
    with pytest.raises(InputError, match="prove"):
        login.answer(struct.pack(">I", 12) + b"v=" + base64.b64encode(b"wrong"))
