"""The service under load is told from strangers, also where somebody else started it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from prony.instruments.processes import ProcessTable, tree_cpu_s
from prony.model.result import Noise
from prony.ports.driver import Endpoint
from prony.runner.parts import worst_noise
from prony.runner.watch_machine import ELSEWHERE, MachineWatch, find_service

# Leaves this process's tree, says its number and its port, then serves; with an argument it is connected to that port.
SERVER = """
import os, socket, sys, time
if os.fork():
    os._exit(0)
os.setsid()
listening = socket.create_server(("127.0.0.1", 0))
helper = socket.create_connection(("127.0.0.1", int(sys.argv[1]))) if len(sys.argv) > 1 else None
print(os.getpid(), listening.getsockname()[1], flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    connection, _ = listening.accept()
    burnt = time.process_time() + 0.3
    while time.process_time() < burnt:
        pass
    connection.sendall(b"done")
    if helper is None and len(sys.argv) == 1:
        kept = connection
"""


@contextmanager
def outside(*arguments: str) -> Iterator[tuple[int, int]]:
    """Give the process and the port of a server that is no child of ours."""
    done = subprocess.Popen([sys.executable, "-c", SERVER, *arguments], stdout=subprocess.PIPE, text=True)
    assert done.stdout is not None
    pid, port = (int(word) for word in done.stdout.readline().split())
    done.wait()
    try:
        yield pid, port
    finally:
        psutil.Process(pid).kill()


def test_a_service_that_was_there_before_is_no_stranger() -> None:
    with outside() as (pid, port):
        endpoint = Endpoint(host="127.0.0.1", port=port)
        assert find_service(endpoint, ProcessTable.read()).trees == {pid}
        plain, watch = MachineWatch(), MachineWatch(endpoint)
        plain.begin()
        watch.begin()
        before = ProcessTable.read()
        with socket.create_connection(("127.0.0.1", port)) as line:
            assert line.recv(4) == b"done"
        found, stranger = watch.end(), plain.end()
        assert tree_cpu_s(before, ProcessTable.read(), {pid}) >= 0.25
        assert found.foreign_cpu is not None
        assert stranger.foreign_cpu is not None
        share = 0.2 / ((stranger.window_s or 0.0) * (psutil.cpu_count() or 1))
        assert stranger.foreign_cpu - found.foreign_cpu >= share
        assert found.unwatched == ""


def test_whom_the_service_is_connected_to_works_for_it() -> None:
    with outside() as (helper, port), outside(str(port)) as (pid, other):
        found = find_service(Endpoint(host="127.0.0.1", port=other), ProcessTable.read())
        assert found.trees == {pid, helper}


def test_another_machine_is_unwatched_and_this_one_is_watched_all_the_same() -> None:
    watch = MachineWatch(Endpoint(host="192.0.2.1", port=80))
    watch.begin()
    time.sleep(0.05)
    found = watch.end()
    assert found.unwatched == ELSEWHERE
    assert found.foreign_cpu is not None


def test_what_cannot_be_told_apart_says_why() -> None:
    watch = MachineWatch(blind="others share it")
    watch.begin()
    time.sleep(0.02)
    found = watch.end()
    assert (found.foreign_cpu, found.unwatched) == (None, "others share it")
    assert find_service(Endpoint(host="127.0.0.1", port=1), ProcessTable.read()).reason.startswith(
        "no process was found"
    )


@pytest.mark.parametrize("is_blind", [False, True])
def test_the_worst_of_all_machines_counts(is_blind: bool) -> None:
    first = Noise(foreign_cpu=0.1, busiest={"a": 0.1})
    second = Noise(unwatched="hidden") if is_blind else Noise(foreign_cpu=0.4, busiest={"b": 0.4}, unwatched=ELSEWHERE)
    found = worst_noise([first, second])
    assert found.foreign_cpu == (None if is_blind else 0.4)
    assert found.unwatched == ("hidden" if is_blind else "")
