"""Ports that stay free until they are taken, and whose they are."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from prony.runner.services.site import free_ports, is_foreign, is_port_taken, reserve_port, says_taken


def listening(port: int, *, reuse: bool) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    made.bind(("127.0.0.1", port))
    made.listen()
    return made


def test_a_server_that_reuses_addresses_listens_on_a_reserved_port() -> None:
    with reserve_port() as port:
        assert not is_port_taken(port)
        with closing(listening(port, reuse=True)):
            assert is_port_taken(port)


def test_nobody_else_is_given_a_reserved_port() -> None:
    with reserve_port() as port:
        with pytest.raises(OSError, match="in use"), closing(listening(port, reuse=False)):
            pass
        assert port not in free_ports(200)


def test_a_port_that_is_not_held_is_free_for_any_server() -> None:
    with reserve_port(hold=False) as port, closing(listening(port, reuse=False)):
        assert is_port_taken(port)


def test_several_ports_are_different() -> None:
    assert len(set(free_ports(50))) == 50


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not tell")
def test_it_is_foreign_where_another_process_listens() -> None:
    with closing(listening(0, reuse=True)) as ours:
        port = ours.getsockname()[1]
        assert not is_foreign(port, [os.getpid()])
        assert not is_foreign(port, [2**22 + 1])  # nothing is known of whoever that is
        assert is_foreign(port, [os.getppid()])


@pytest.mark.parametrize(
    "words",
    [
        "Could not create server TCP listening socket 127.0.0.1:6379: bind: Address already in use",
        'could not bind IPv4 address "127.0.0.1": Address already in use',
        "[emerg] bind() to 127.0.0.1:80 failed (98: Address already in use)",
        "listen tcp 127.0.0.1:9333: bind: address already in use",
        "Error: Address 127.0.0.1:8000 is not available.",
        "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
        "ERROR Unable to start the server: Specified port is already in use",
        "Error: Bind for 127.0.0.1:6379 failed: port is already allocated",
        "OSError: [Errno 98] Address already in use",
    ],
)
def test_servers_say_in_many_words_that_a_port_is_taken(words: str) -> None:
    assert says_taken(words)


@pytest.mark.parametrize("words", ["", "no such file", "FATAL: out of memory", "listening on port 80"])
def test_other_words_do_not_say_so(words: str) -> None:
    assert not says_taken(words)
