"""Whole loads by real client processes on real sockets: every request ends as exactly one row, with the right cause."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanes import only_slowly
from prony.errors import InputError, MeasurementError
from prony.load.generator import LostClientError, default_processes, generate, lines_asked, may_come_first
from prony.load.http import request_bytes
from prony.load.limits import check_lines
from prony.load.live import LiveFigures
from prony.load.outcome import LoadOutcome
from prony.load.records import read_head
from prony.load.schedule import LoadSchedule, RateStep
from prony.ports.driver import Cause, Endpoint, Keeps, Prepared, Request
from servers.needs import lack
from servers.ports import refusing_port

from .house import OK, WIRE, Server, Visit, column, endless, ground_of, load_on, numbers_of, prepared, serving

CHUNKS = (b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n")


def causes(values: list[int]) -> Counter[str]:
    return Counter(Cause(value).name for value in values)


# Closed loads


def test_a_count_of_requests_is_sent_over_lines_that_are_kept(tmp_path: Path) -> None:
    with serving() as server:
        outcome = load_on(server, tmp_path, prepared(server.endpoint, 7), closed={"concurrency": 4}, requests=50)
    assert column(outcome, "index") == list(range(50))
    assert column(outcome, "request") == [index % 7 for index in range(50)]
    assert causes(column(outcome, "cause")) == {"OK": 50}
    assert set(column(outcome, "status")) == {200}
    assert set(column(outcome, "bytes_in")) == {len(OK)}
    assert Counter(numbers_of(server.visits)) == Counter(index % 7 for index in range(50))
    assert server.connections == 4
    (facts,) = outcome.clients
    assert (facts.connections_opened, facts.connections_asked, facts.rows, facts.sent) == (4, 4, 50, 50)
    assert 0 < facts.cpu_s < facts.wall_s + 1


def test_stamps_are_in_order_and_the_kernels_come_first(tmp_path: Path) -> None:
    with serving() as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 2}, requests=40)
    records = outcome.records
    for before, after in (("due_ns", "sent_ns"), ("sent_ns", "first_ns"), ("first_ns", "end_ns")):
        assert (records[before] <= records[after]).all()
    assert (records["sent_ns"] >= outcome.begin_ns).all()
    if sys.platform.startswith("linux"):
        # What the process saw lies after what the kernel saw, by a little.
        assert (records["lag_ns"] > 0).all()
        assert (records["lag_ns"] < 60 * 10**9).all()


def test_time_ends_a_load_and_what_is_in_flight_comes_home(tmp_path: Path) -> None:
    async def slow(visit: Visit) -> None:
        await asyncio.sleep(0.05)
        visit.write(OK)

    with serving(slow) as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 3}, duration="1s")
    assert causes(column(outcome, "cause")) == {"OK": len(server.visits)}
    # No user begins another request after the end; one that had just decided to may be late by as much as it likes.
    assert (outcome.records["sent_ns"] >= outcome.begin_ns + 10**9).sum() <= 3
    assert outcome.end_ns >= outcome.begin_ns + 10**9


def test_two_processes_send_what_one_would(tmp_path: Path) -> None:
    seen = []
    for processes in (1, 2):
        with serving() as server:
            outcome = load_on(
                server, tmp_path / str(processes), prepared(server.endpoint, 5),
                processes=processes, closed={"concurrency": 4}, requests=31,
            )  # fmt: skip
        seen.append((column(outcome, "index"), column(outcome, "request"), sorted(numbers_of(server.visits))))
        assert len(outcome.clients) == processes
        assert server.connections == 4
    assert seen[0] == seen[1]
    assert [index % 2 for index in column(outcome, "index")] == column(outcome, "client")


def test_a_user_thinks_before_the_next_request(tmp_path: Path) -> None:
    with serving() as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 1, "think": "5ms"}, requests=5)
    records = outcome.records
    assert (records["sent_ns"][1:] - records["end_ns"][:-1] >= 5_000_000).all()


def test_the_turns_of_a_session_follow_one_another_on_one_line(tmp_path: Path) -> None:
    after = [None, 0, 1, None, None, 4]
    with serving() as server:
        requests = [
            Request(request_bytes("GET", f"/{number}", server.endpoint), after=before)
            for number, before in enumerate(after)
        ]
        outcome = load_on(server, tmp_path, Prepared(requests, WIRE), closed={"concurrency": 3}, requests=6)
    lines: dict[int, list[int]] = {}
    for connection, request in server.visits:
        lines.setdefault(connection, []).append(int(request.split()[1][1:]))
    assert sorted(column(outcome, "request")) == [0, 1, 2, 3, 4, 5]
    chains = [chain for line in lines.values() for chain in ("".join(map(str, line)),)]
    assert sum("012" in chain for chain in chains) == 1
    assert sum("45" in chain for chain in chains) == 1


async def unhurried(visit: Visit) -> None:
    """Answer after a while: users who are answered at once take a core for as long as the load lasts."""
    await asyncio.sleep(0.01)
    visit.write(OK)


def test_users_come_and_go_in_steps(tmp_path: Path) -> None:
    stages = [{"duration": "500ms", "concurrency": 1}, {"duration": "2s", "concurrency": 4},
              {"duration": "100ms", "concurrency": 1}]  # fmt: skip
    with serving(unhurried) as server:
        outcome = load_on(server, tmp_path, stages=stages)
    sent = outcome.records["sent_ns"] - outcome.begin_ns
    end = outcome.records["end_ns"] - outcome.begin_ns
    assert causes(column(outcome, "cause")) == {"OK": len(server.visits)}
    assert server.connections == 4

    def most_in_flight(begin: int, until: int) -> int:
        instants = sent[(sent >= begin) & (sent < until)]
        return max((int(((sent <= at) & (end > at)).sum()) for at in instants), default=0)

    assert most_in_flight(0, 495_000_000) == 1
    assert most_in_flight(510_000_000, 2_490_000_000) == 4


def test_a_process_whose_users_come_later_is_not_waited_for(tmp_path: Path) -> None:
    stages = [{"duration": "50ms", "concurrency": 1}, {"duration": "2s", "concurrency": 3}]
    with serving(unhurried) as server:
        outcome = load_on(server, tmp_path, processes=3, stages=stages, timeout="60s")
    assert [facts.connections_asked for facts in outcome.clients] == [1, 1, 1]
    assert {facts.connections_opened for facts in outcome.clients} == {1}
    assert set(column(outcome, "client")) == {0, 1, 2}
    assert causes(column(outcome, "cause")) == {"OK": len(outcome)}


def test_a_burst_is_sent_at_once_and_waited_for(tmp_path: Path) -> None:
    with serving() as server:
        ground = ground_of(server, tmp_path, closed={"concurrency": 1})
        schedule = LoadSchedule(steps=(RateStep(0, 1),), burst=4, count=12)
        outcome = generate(type(ground)(ground.requests, ground.endpoint, schedule, ground.load, tmp_path))
    records = outcome.records
    assert len(outcome) == 12
    for first in (4, 8):
        assert records["sent_ns"][first : first + 4].min() >= records["end_ns"][first - 4 : first].max()


def test_a_duration_waits_for_the_least_count(tmp_path: Path) -> None:
    with serving() as server:
        ground = ground_of(server, tmp_path, closed={"concurrency": 2})
        schedule = LoadSchedule(steps=(RateStep(0, 2),), duration_ns=1, at_least=20)
        outcome = generate(type(ground)(ground.requests, ground.endpoint, schedule, ground.load, tmp_path))
    assert 20 <= len(outcome) <= 22
    assert causes(column(outcome, "cause")) == {"OK": len(outcome)}


# Open loads


def test_requests_leave_when_they_are_due_and_not_before(tmp_path: Path) -> None:
    with serving() as server:
        ground = ground_of(server, tmp_path, open={"rate": 20, "arrivals": "constant"}, duration="3s")
        outcome = generate(ground)
    dues = ground.schedule.dues_ns
    assert dues is not None
    assert (outcome.records["due_ns"] - outcome.begin_ns).tolist() == dues.tolist()
    assert (outcome.records["sent_ns"] >= outcome.records["due_ns"]).all()
    # All of them at the end would be late by half of it. How exact it is, is the benchmark's to say.
    assert np.median(outcome.records["sent_ns"] - outcome.records["due_ns"]) < 750_000_000
    assert causes(column(outcome, "cause")) == {"OK": len(dues)}


def test_an_open_load_does_not_wait_for_replies(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def held(visit: Visit) -> None:
        if visit.number == 39:
            gate.set()
        await gate.wait()
        visit.write(OK)

    with serving(held) as server:
        outcome = load_on(server, tmp_path, open={"rate": 400, "arrivals": "constant"}, requests=40)
    assert causes(column(outcome, "cause")) == {"OK": 40}
    assert server.connections >= 40


def test_beyond_the_most_in_flight_requests_are_dropped_and_counted(tmp_path: Path) -> None:
    async def never(visit: Visit) -> None:
        await asyncio.sleep(60)

    with serving(never) as server:
        outcome = load_on(
            server, tmp_path, open={"rate": 400, "arrivals": "constant", "most_in_flight": 8},
            requests=40, drain="2s",
        )  # fmt: skip
    assert causes(column(outcome, "cause")) == {"CUT": 8, "DROPPED": 32}
    assert len(server.visits) == 8


def test_two_processes_share_the_schedule_of_one(tmp_path: Path) -> None:
    dues = []
    for processes in (1, 2):
        with serving() as server:
            outcome = load_on(
                server, tmp_path / str(processes), prepared(server.endpoint, 3),
                processes=processes, open={"rate": 300}, duration="300ms",
            )  # fmt: skip
        dues.append((column(outcome, "request"), (outcome.records["due_ns"] - outcome.begin_ns).tolist()))
    assert dues[0] == dues[1]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_turn_is_not_sent_before_the_last_one_is_answered(tmp_path: Path, processes: int) -> None:
    async def slow(visit: Visit) -> None:
        await asyncio.sleep(0.02)
        visit.write(OK)

    with serving(slow) as server:
        requests = [
            Request(request_bytes("GET", f"/{number}", server.endpoint), after=number - 1 if number % 3 else None)
            for number in range(6)
        ]
        outcome = load_on(
            server, tmp_path, Prepared(requests, WIRE),
            processes=processes, open={"rate": 1000, "arrivals": "constant"}, requests=12,
        )  # fmt: skip
    records = outcome.records
    assert causes(column(outcome, "cause")) == {"OK": 12}
    for index in range(12):
        if index % 3:
            assert records["sent_ns"][index] >= records["end_ns"][index - 1]
            assert records["due_ns"][index] >= records["end_ns"][index - 1]


# What goes wrong


def one_by_one(server: Server, scratch: Path, count: int = 6, **load: Any) -> Counter[str]:
    outcome = load_on(server, scratch, closed={"concurrency": 1}, requests=count, **load)
    assert column(outcome, "index") == list(range(count))
    return causes(column(outcome, "cause"))


def test_a_connection_that_breaks_within_a_reply_is_a_reset_or_a_cut_reply(tmp_path: Path) -> None:
    async def breaks(visit: Visit) -> None:
        if visit.number == 0:
            visit.reset()
        elif visit.number == 3:
            visit.write(OK[:-1])
            visit.close()
        else:
            visit.write(OK)

    with serving(breaks) as server:
        assert one_by_one(server, tmp_path) == {"OK": 4, "RESET": 1, "TRUNCATED": 1}


@pytest.mark.parametrize("way", [{"closed": {"concurrency": 2}}, {"open": {"rate": 300, "arrivals": "constant"}}])
def test_a_server_that_closes_behind_each_reply_without_a_word_is_asked_again(
    tmp_path: Path, way: dict[str, Any]
) -> None:
    """As llama.cpp's does after a stream: it promises to keep the connection, and closes it."""

    async def forgetful(visit: Visit) -> None:
        visit.write(OK)
        visit.close()

    with serving(forgetful) as server:
        outcome = load_on(server, tmp_path, requests=60, **way)
    assert column(outcome, "index") == list(range(60))
    assert causes(column(outcome, "cause")) == {"OK": 60}


def test_a_fresh_connection_that_is_closed_at_once_is_not_asked_for_ever(tmp_path: Path) -> None:
    async def hostile(visit: Visit) -> None:
        visit.close()

    with serving(hostile) as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 1}, requests=3)
    assert causes(column(outcome, "cause")) == {"RESET": 3}
    assert sum(one.asked_again for one in outcome.clients) == 0


def test_a_reset_in_the_middle_of_a_reply_is_a_reset(tmp_path: Path) -> None:
    async def breaks(visit: Visit) -> None:
        visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await visit.writer.drain()
        visit.reset()

    with serving(breaks) as server:
        assert set(one_by_one(server, tmp_path, 2)) <= {"RESET", "TRUNCATED"}


def test_replies_that_end_with_the_connection_are_whole(tmp_path: Path) -> None:
    async def closes(visit: Visit) -> None:
        visit.write(
            b"HTTP/1.1 200 OK\r\n\r\nno length" if visit.number % 2 else OK[:-6] + b"\r\nConnection: close\r\n\r\nok"
        )
        visit.close()

    with serving(closes) as server:
        assert one_by_one(server, tmp_path) == {"OK": 6}
        assert server.connections == 6


def test_no_and_nonsense_are_told_apart(tmp_path: Path) -> None:
    async def answers(visit: Visit) -> None:
        visit.write([OK, OK.replace(b"200", b"503"), b"what?\r\n\r\n"][visit.number % 3])

    with serving(answers) as server:
        assert one_by_one(server, tmp_path) == {"OK": 2, "STATUS": 2, "MALFORMED": 2}


def test_a_reply_that_takes_too_long_is_a_timeout_and_its_line_is_not_used_again(tmp_path: Path) -> None:
    async def sometimes(visit: Visit) -> None:
        if visit.number % 2:
            await asyncio.sleep(60)
        visit.write(OK)

    with serving(sometimes) as server:
        assert one_by_one(server, tmp_path, 4, timeout="2s") == {"OK": 2, "TIMEOUT": 2}
        assert server.connections == 2


def test_what_the_drain_does_not_bring_home_is_cut(tmp_path: Path) -> None:
    async def never(visit: Visit) -> None:
        await asyncio.sleep(60)

    with serving(never) as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 3}, duration="1s", drain="50ms")
    assert causes(column(outcome, "cause")) == {"CUT": 3}


@pytest.mark.parametrize("way", ["closed", "open"])
def test_a_server_that_refuses_is_asked_again_but_not_in_a_rush(tmp_path: Path, way: str) -> None:
    with refusing_port() as port:
        server = Server(Endpoint(host="127.0.0.1", port=port))
        if way == "closed":
            outcome = load_on(server, tmp_path, closed={"concurrency": 2}, duration="1s")
            assert 2 <= len(outcome) <= 25
        else:
            outcome = load_on(server, tmp_path, open={"rate": 200, "arrivals": "constant"}, requests=50)
            assert len(outcome) == 50
    assert set(causes(column(outcome, "cause"))) == {"REFUSED"}
    assert outcome.clients[0].connections_opened == 0


@pytest.mark.parametrize("way", ["closed", "open"])
@pytest.mark.parametrize("seed", [1, *only_slowly(2, 3)])
def test_whatever_a_server_does_every_request_is_one_row(tmp_path: Path, way: str, seed: int) -> None:
    chance = random.Random(seed)
    half = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"

    async def faulty(visit: Visit) -> None:
        fault = chance.randrange(9)
        if fault == 0:
            visit.reset()
        elif fault == 1:
            visit.close()
        elif fault == 2:
            visit.write(half)
            visit.close()
        elif fault == 3:
            visit.write(b"\x00\x01")
        elif fault == 4:
            await asyncio.sleep(60)
        elif fault == 5:
            visit.write(OK + OK)
        else:
            visit.write(OK)

    load = {"closed": {"concurrency": 5}} if way == "closed" else {"open": {"rate": 500}}
    with serving(faulty) as server:
        outcome = load_on(
            server, tmp_path, prepared(server.endpoint, 3, keeps=Keeps.REPLY),
            processes=2, requests=120, timeout="1s", drain="5s", **load,
        )  # fmt: skip
    assert column(outcome, "index") == list(range(120))
    counted = causes(column(outcome, "cause"))
    assert counted["OK"] > 20
    # On a machine that is slow enough even a connection may take longer than the time-out.
    assert set(counted) <= {"OK", "RESET", "TRUNCATED", "MALFORMED", "TIMEOUT", "REFUSED"}
    assert (outcome.records["end_ns"] >= outcome.records["sent_ns"]).all()
    assert sum(facts.rows for facts in outcome.clients) == 120


# Ways to the server


def test_streams_are_kept_piece_by_piece_with_the_time_of_each(tmp_path: Path) -> None:
    async def stream(visit: Visit) -> None:
        visit.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in CHUNKS:
            visit.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await asyncio.sleep(0.2)
        visit.write(b"0\r\n\r\n")

    with serving(stream) as server:
        wanted = prepared(server.endpoint, keeps=Keeps.REPLY)
        outcome = load_on(server, tmp_path, wanted, closed={"concurrency": 2}, requests=6)
    replies = dict(outcome.replies())
    assert sorted(replies) == list(range(6))
    for row, reply in replies.items():
        assert (reply.status, reply.body) == (200, b"".join(CHUNKS))
        assert sum(reply.sizes) == len(reply.body)
        stamps = reply.stamps_ns
        assert (np.diff(stamps) >= 0).all()
        assert outcome.records["first_ns"][row] <= stamps[0] <= stamps[-1] <= outcome.records["end_ns"][row]
    # The gaps between pieces are there, and no piece waited for the last; a client that was held up may see one reply
    # at once, but not most of them.
    spans = [int(reply.stamps_ns[-1] - reply.stamps_ns[0]) for reply in replies.values()]
    assert np.median(spans) > 5_000_000, spans
    assert [row for row, _ in outcome.replies([4, 1])] == [4, 1]


def test_large_requests_and_replies_pass(tmp_path: Path) -> None:
    body = os.urandom(4 * 2**20)

    async def echo(visit: Visit) -> None:
        content = visit.request.partition(b"\r\n\r\n")[2]
        visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))

    with serving(echo) as server:
        request = Request(request_bytes("POST", "/", server.endpoint, body=body))
        wanted = Prepared([request], WIRE, {}, Keeps.REPLY)
        outcome = load_on(server, tmp_path, wanted, closed={"concurrency": 2}, requests=4)
    assert causes(column(outcome, "cause")) == {"OK": 4}
    assert all(reply.body == body for _, reply in outcome.replies())


def test_a_unix_socket_is_an_endpoint(tmp_path: Path) -> None:
    with serving(path=tmp_path / "s") as server:
        outcome = load_on(server, tmp_path / "x", closed={"concurrency": 3}, requests=20)
    assert causes(column(outcome, "cause")) == {"OK": 20}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    openssl = shutil.which("openssl")
    if openssl is None:
        lack("openssl", "it makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", folder / "key", "-out", folder / "crt"], check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_keeps_the_stamps_and_takes_up_its_session_again(
    tmp_path: Path, certificate: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    async def closes(visit: Visit) -> None:
        visit.write(OK if visit.number % 2 else OK[:-6] + b"\r\nConnection: close\r\n\r\nok")
        if visit.number % 2 == 0:
            visit.close()

    certificate.maximum_version = version
    with serving(closes, tls=certificate) as server:
        outcome = load_on(server, tmp_path, closed={"concurrency": 1}, requests=8)
    assert causes(column(outcome, "cause")) == {"OK": 8}
    assert server.resumed == outcome.clients[0].sessions_resumed >= 3
    if sys.platform.startswith("linux"):
        assert (outcome.records["lag_ns"] > 0).all()


def test_large_bodies_pass_through_tls(tmp_path: Path, certificate: ssl.SSLContext) -> None:
    body = os.urandom(2**20)

    async def echo(visit: Visit) -> None:
        content = visit.request.partition(b"\r\n\r\n")[2]
        visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))

    with serving(echo, tls=certificate) as server:
        request = Request(request_bytes("POST", "/", server.endpoint, body=body))
        outcome = load_on(server, tmp_path, Prepared([request], WIRE, {}, Keeps.REPLY), requests=3)
    assert causes(column(outcome, "cause")) == {"OK": 3}
    assert all(reply.body == body for _, reply in outcome.replies())


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_that_is_waived(
    tmp_path: Path, certificate: ssl.SSLContext
) -> None:
    with serving(tls=certificate) as server:
        strict = Server(Endpoint(host="localhost", port=server.endpoint.port, tls=True))
        assert one_by_one(strict, tmp_path, 2) == {"REFUSED": 2}


# The course of a load


def test_the_live_figures_end_with_the_whole(tmp_path: Path) -> None:
    seen: list[LiveFigures] = []
    begun: list[int] = []
    with serving(unhurried) as server:
        ground = ground_of(server, tmp_path, closed={"concurrency": 2}, duration="2s")
        outcome = generate(ground, on_tick=seen.append, on_start=begun.append)
    assert begun == [outcome.begin_ns]
    assert len(seen) >= 2
    assert [live.done for live in seen] == sorted(live.done for live in seen)
    assert (seen[-1].done, seen[-1].in_flight, seen[-1].failed) == (len(outcome), 0, 0)
    assert seen[-1].p50_ms is not None
    assert seen[0].left_s is not None


def test_a_load_that_is_stopped_ends_shortly_with_all_its_rows(tmp_path: Path) -> None:
    asked = threading.Event()
    with serving() as server:
        ground = ground_of(server, tmp_path, closed={"concurrency": 3}, duration="10m")
        outcome = generate(ground, on_tick=lambda live: asked.set() if live.done else None, stop_asked=asked.is_set)
    assert outcome.was_stopped
    assert column(outcome, "index") == list(range(len(server.visits)))
    assert causes(column(outcome, "cause")) == {"OK": len(outcome)}


def test_a_load_that_is_stopped_before_it_begins_has_no_rows(tmp_path: Path) -> None:
    with serving() as server:
        outcome = generate(ground_of(server, tmp_path, closed={"concurrency": 3}), stop_asked=lambda: True)
    assert outcome.was_stopped
    assert len(outcome) == len(server.visits) == 0


def test_a_server_that_is_slow_to_accept_does_not_hold_up_the_start_for_ever(tmp_path: Path) -> None:
    # A queue of one that nobody serves: connections beyond it hang.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        server = Server(Endpoint(host="127.0.0.1", port=deaf.getsockname()[1]))
        outcome = load_on(server, tmp_path, closed={"concurrency": 6}, requests=6, timeout="100ms", drain="1s")
    assert column(outcome, "index") == list(range(6))
    assert set(causes(column(outcome, "cause"))) <= {"TIMEOUT", "CUT", "REFUSED"}


def test_what_may_hold_a_password_is_nobody_elses_to_read(tmp_path: Path) -> None:
    with serving() as server:
        load_on(server, tmp_path, requests=1)
    for name in ("client-0.json", "requests.bytes", "client-0.records"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def clients_of(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            is_client = b"prony.load.client" in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(words[1]) == parent and is_client:
            found.append(int(folder.name))
    return found


def signalled(scratch: Path, number: signal.Signals) -> tuple[Server, object]:
    """Send a signal to one client process of two when both have rows; return what came of the load.

    The load would go on for long after that: it is stopped when the process that got the signal is gone."""
    hit: list[int] = []

    def hurt(_: LiveFigures) -> None:
        if not hit and all(read_head(scratch / f"client-{client}.records")["rows"] for client in range(2)):
            hit.extend(sorted(clients_of(os.getpid()))[:1])
            os.kill(hit[0], number)

    def is_gone() -> bool:
        return bool(hit) and hit[0] not in clients_of(os.getpid())

    with serving() as server:
        ground = ground_of(server, scratch, processes=2, closed={"concurrency": 4}, duration="5m")
        try:
            return server, generate(ground, on_tick=hurt, stop_asked=is_gone)
        except MeasurementError as exc:
            return server, exc


linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")


@linux_only
def test_sigterm_ends_one_client_in_good_order(tmp_path: Path) -> None:
    server, outcome = signalled(tmp_path, signal.SIGTERM)
    assert isinstance(outcome, LoadOutcome)
    assert outcome.was_stopped  # so the process that got the signal was gone before the load was over
    assert len(outcome) == len(server.visits)


@linux_only
def test_a_client_process_that_dies_voids_the_load_and_leaves_no_other_behind(tmp_path: Path) -> None:
    _, problem = signalled(tmp_path, signal.SIGKILL)
    assert isinstance(problem, MeasurementError)
    assert "ended too early (exit code -9)" in problem.message
    # Nothing that was recorded is lost, of the others or of the one that died.
    assert isinstance(problem, LostClientError)
    assert set(column(problem.rest, "client")) == {0, 1}
    assert causes(column(problem.rest, "cause")) == {"OK": len(problem.rest)}
    assert clients_of(os.getpid()) == []


@linux_only
def test_a_client_process_ends_with_whoever_started_it(tmp_path: Path) -> None:
    seen = threading.Event()

    async def noted(visit: Visit) -> None:
        visit.write(OK)
        seen.set()

    with serving(noted) as server:
        place = (server.endpoint.host, server.endpoint.port, str(tmp_path))
        parent = multiprocessing.get_context("spawn").Process(target=endless, args=place)
        parent.start()
        assert seen.wait(60)
        (client,) = clients_of(parent.pid or 0)
        watched = os.pidfd_open(client)
        parent.kill()
        parent.join()
        assert select.select([watched], [], [], 60)[0] == [watched]
        os.close(watched)


def test_a_client_that_cannot_begin_says_why(tmp_path: Path) -> None:
    with serving() as server:
        wrong = Prepared([Request(b"x")], "prony.load.http:NoSuchWire")
        with pytest.raises(MeasurementError, match="NoSuchWire"):
            load_on(server, tmp_path, wrong)


# What is settled before


def test_a_load_without_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no request"):
        load_on(Server(Endpoint(host="h", port=1)), tmp_path, Prepared([], WIRE))


def test_a_turn_that_stands_before_the_one_it_follows_is_refused(tmp_path: Path) -> None:
    wrong = Prepared([Request(b"a", after=1), Request(b"b")], WIRE)
    with pytest.raises(InputError, match="request 0 must come after request 1"):
        load_on(Server(Endpoint(host="127.0.0.1", port=1)), tmp_path, wrong)


@pytest.mark.parametrize(
    ("schedule", "processes"),
    [
        (LoadSchedule(steps=(RateStep(0, 256),)), 1),
        (LoadSchedule(steps=(RateStep(0, 10), RateStep(5, 1000))), 4),
        (LoadSchedule(steps=(RateStep(0, 5000),)), 7),
        (LoadSchedule(dues_ns=np.arange(40_000) * 50_000), 1),
        (LoadSchedule(dues_ns=np.arange(100_000) * 20_000), 3),
    ],
)
def test_a_load_gets_as_many_processes_as_it_needs(schedule: LoadSchedule, processes: int) -> None:
    assert default_processes(schedule, 8) == processes
    assert default_processes(schedule, 1) == 1


def test_an_open_load_opens_some_lines_beforehand() -> None:
    assert lines_asked(LoadSchedule(dues_ns=np.arange(1000) * 1_000_000)) == 50
    assert lines_asked(LoadSchedule(dues_ns=np.arange(1000) * 1_000_000, most_in_flight=3)) == 3


def test_more_connections_than_ports_are_refused_beforehand(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("1000\t1099\n")
    check_lines(100, Endpoint(host="h", port=1), tmp_path / "range")
    check_lines(101, Endpoint(path="/s"), tmp_path / "range")
    with pytest.raises(InputError, match="100 local ports"):
        check_lines(101, Endpoint(host="h", port=1), tmp_path / "range")


@pytest.mark.parametrize(
    ("schedule", "processes", "is_first"),
    [
        (LoadSchedule(steps=(RateStep(0, 1),)), 1, False),
        (LoadSchedule(dues_ns=np.arange(40_000) * 50_000), 1, True),
        (LoadSchedule(dues_ns=np.arange(100_000) * 20_000), 1, False),
        (LoadSchedule(dues_ns=np.arange(100_000) * 20_000), 3, True),
    ],
)
def test_only_clients_of_an_open_load_that_are_not_busy_all_the_time_come_first(
    schedule: LoadSchedule, processes: int, is_first: bool
) -> None:
    assert may_come_first(schedule, processes) is is_first


def test_whoever_may_keeps_instants_by_running_first_and_leaves_the_others_a_core(tmp_path: Path) -> None:
    try:
        cores = len(os.sched_getaffinity(0))
        own = os.sched_getscheduler(0)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, own, os.sched_param(0))
    except (AttributeError, OSError):
        pytest.skip("no real-time priority is to be had here")
    with serving() as server:
        few = load_on(server, tmp_path / "few", processes=1, open={"rate": 500}, requests=20)
        many = load_on(server, tmp_path / "many", processes=cores, open={"rate": 500}, requests=20)
        users = load_on(server, tmp_path / "users", closed={"concurrency": 1}, requests=20)
    assert [one.is_real_time for one in few.clients] == [cores > 1]
    assert not any(one.is_real_time for one in (*many.clients, *users.clients))
