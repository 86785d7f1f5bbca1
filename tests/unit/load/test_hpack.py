"""Header blocks: what we send another reads, what another sends we read as far as we must, and garbage is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.load.hpack import BlockError, block, status_numbers

hpack = pytest.importorskip("hpack", reason="the oracle is not here: pip install hpack")

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True)
VALUES = st.binary(max_size=300)


@given(st.lists(st.tuples(NAMES.map(str.encode), VALUES), max_size=8), st.sampled_from([b"/", b"/a?b=c" * 40]))
def test_what_is_sent_is_read_by_others(headers: list[tuple[bytes, bytes]], path: bytes) -> None:
    sent = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"host:1"), (b":path", path), *headers]
    assert hpack.Decoder().decode(block(sent), raw=True) == sent


@given(
    status=st.integers(100, 599),
    grpc=st.none() | st.integers(0, 16),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=8),
    is_coded=st.booleans(),
)
def test_the_statuses_of_others_are_read(
    status: int, grpc: int | None, headers: list[tuple[str, bytes]], is_coded: bool
) -> None:
    encoder = hpack.Encoder()
    encoder.header_table_size = 0  # what we ask of every server
    trailer = [] if grpc is None else [("grpc-status", str(grpc))]
    others = [(name, value) for name, value in headers if name != "grpc-status"]
    found = status_numbers(encoder.encode([(":status", str(status)), *others, *trailer], huffman=is_coded))
    assert found == {"status": status} | ({} if grpc is None else {"grpc": grpc})


@given(st.binary(max_size=60))
def test_garbage_is_told_and_nothing_else_happens(data: bytes) -> None:
    try:
        found = status_numbers(data)
    except BlockError:
        return
    assert set(found) <= {"status", "grpc"}


@pytest.mark.parametrize("data", ["be", "7e", "ff", "80", "4803", "0f2f05", "0085"])
def test_a_table_that_is_not_kept_and_what_ends_too_soon_are_refused(data: str) -> None:
    with pytest.raises(BlockError):
        status_numbers(bytes.fromhex(data))


def test_a_status_that_is_no_number_is_none() -> None:
    assert status_numbers(b"\x08\x03abc") == {"status": -1}
