"""`prony server` as a person starts it: a process of its own, real HTTP, a real store, and every way to end it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import polars
import pytest

from chaos.attacks import LONGEST_END_S, time_end
from prony.app.access import open_access
from prony.model.access import NewToken, Role
from prony.store.home import Home
from prony.store.owner_token import read_owner_token
from prony.store.result_tar import pack
from servers.ports import free_port
from servers.waiting import wait_for

RECIPE = """
name: small
workload: {kind: model, model: "zoo:noop", engine: onnxruntime}
measure: {runs: 5, repeats: 1, warmup: 1, isolation: fork}
"""
FACTS = {"kinds": "model", "schemes": "zoo", "engine": "onnxruntime", "engine.onnxruntime.unit": "cpu"}
# How long a server may take to end, whatever is going on: half of what those who wait for it were promised.
SOON_S = 30


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str
    client: httpx.Client
    log: Path

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SOON_S)


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "prony", "server", *options]


@contextmanager
def running(folder: Path, *options: str, token: str = "") -> Iterator[Running]:
    """A server that takes requests; it ends with the block. Without a `token` it asks nobody who they are."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    environment = os.environ | {"PRONY_HOME": str(folder / "home")}
    with log.open("w") as errors:
        process = subprocess.Popen(
            command("--port", "0", *([] if token else ["--no-auth"]), *options),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            umask=0o022,  # as most people have it
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.match(r"serving at (http://\S+)", first)
        assert found, first + log.read_text()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=found[1], headers=headers, timeout=60, trust_env=False) as client:
            yield Running(process, found[1], client, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server"), "--log-format", "json", "--log-level", "debug") as found:
        yield found


def refused(folder: Path, *options: str) -> tuple[int, str]:
    """Start a server that will not start; return its exit code and what it says."""
    environment = os.environ | {"PRONY_HOME": str(folder / "home")}
    done = subprocess.run(command(*options), capture_output=True, text=True, check=False, env=environment, timeout=120)
    return done.returncode, done.stderr


def told_of(name: str) -> dict[str, object]:
    return {"name": name, "device_key": f"d-{name}", "incarnation": "i1", "capabilities": {"facts": FACTS}}


def enrol(client: httpx.Client, name: str, **headers: str) -> str:
    return str(
        client.post("/api/v1/agents", json=told_of(name), headers=headers).raise_for_status().json()["agent"]["id"]
    )


def submit(client: httpx.Client, text: str = RECIPE) -> str:
    return str(client.post("/api/v1/experiments", json={"text": text}).raise_for_status().json()["experiment"]["id"])


def asked(agent_id: str, wait_s: float = 10) -> dict[str, Any]:
    return {"agent_id": agent_id, "incarnation": "i1", "wait_s": wait_s}


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], bytes]:
    """Return what runs a leased job for real and packs its result folder."""

    def run(job: dict[str, Any]) -> bytes:
        folder = tmp_path_factory.mktemp("job")
        (folder / "job.json").write_text(json.dumps(job))
        exec_ = [sys.executable, "-m", "prony", "exec", str(folder / "job.json"), "--out", str(folder / "result")]
        environment = os.environ | {"PRONY_HOME": str(folder / "home")}
        subprocess.run(exec_, check=True, capture_output=True, env=environment, timeout=300, umask=0o022)
        pack(folder / "result", folder / "result.tar")
        return (folder / "result.tar").read_bytes()

    return run


def sha256(data: bytes) -> dict[str, str]:
    return {"Prony-Sha256": hashlib.sha256(data).hexdigest()}


# A job's whole life


def test_a_job_goes_from_submission_to_report_over_http(
    server: Running, measure: Callable[[dict[str, Any]], bytes]
) -> None:
    client = server.client
    agent_id = enrol(client, "life")
    experiment_id = submit(client)
    events = list[str]()
    watching = threading.Thread(target=lambda: events.extend(watch(server.url, experiment_id)), daemon=True)
    watching.start()
    lease = client.post("/api/v1/leases", json=asked(agent_id)).raise_for_status().json()
    job_id = lease["job"]["id"]
    event = {"kind": "repetition", "job_id": job_id, "done": 1, "total": 1}
    told = client.post(f"/api/v1/leases/{lease['id']}/progress", json={"events": [event], "log": "begun\n"})
    assert told.json() == {"cancel": False}
    tar = measure(lease["job"])

    # The first half in a piece, the second after a look at what has arrived.
    half = len(tar) // 2
    upload = f"/api/v1/leases/{lease['id']}/upload"
    assert client.patch(f"{upload}?offset=0", content=tar[:half]).json() == {"offset": half}
    wrong = client.patch(f"{upload}?offset=7", content=b"x")
    assert (wrong.status_code, str(half) in wrong.json()["detail"]) == (409, True)
    assert client.get(upload).json() == {"offset": half}
    assert client.patch(f"{upload}?offset={half}", content=tar[half:]).json() == {"offset": len(tar)}
    finish = f"/api/v1/leases/{lease['id']}/result"
    assert client.put(finish, headers=sha256(tar)).json() == {"accepted": True, "lease": None}
    assert client.put(finish, content=tar, headers=sha256(tar)).json()["accepted"] is False

    assert client.get(f"/api/v1/experiments/{experiment_id}").json()["experiment"]["state"] == "complete"
    watching.join(60)
    assert events[0] == "snapshot"
    assert {"job", "experiment"} <= set(events)
    detail = client.get(f"/api/v1/jobs/{job_id}").json()
    assert [(one["number"], one["state"]) for one in detail["attempts"]] == [(1, "complete")]
    check_results(client, experiment_id, job_id)
    assert client.delete(f"/api/v1/experiments/{experiment_id}").status_code == 204
    assert client.get(f"/api/v1/experiments/{experiment_id}").status_code == 404


def check_results(client: httpx.Client, experiment_id: str, job_id: str) -> None:
    results = client.get(f"/api/v1/experiments/{experiment_id}/results").json()
    assert [one["job"]["id"] for one in results["entries"]] == [job_id]
    assert client.get(f"/api/v1/jobs/{job_id}/result").json()["result"]["state"] == "complete"
    samples = client.get(f"/api/v1/jobs/{job_id}/samples")
    assert samples.headers["content-type"] == "application/vnd.apache.parquet"
    assert polars.read_parquet(io.BytesIO(samples.content)).height >= 5
    assert client.get(f"/api/v1/jobs/{job_id}/logs").text == "begun\n"
    for form, sign in (("html", "<!doctype html>"), ("md", "# small"), ("json", '"version"'), ("csv", "job_id"),
                       ("junit", "<testsuite")):  # fmt: skip
        assert sign in client.get(f"/api/v1/experiments/{experiment_id}/report?format={form}").text.lower()
    export = client.get(f"/api/v1/experiments/{experiment_id}/export")
    with tarfile.open(fileobj=io.BytesIO(export.content)) as tar:
        assert any(name.endswith("samples.parquet") for name in tar.getnames())
    metrics = client.get("/metrics").text
    assert 'prony_results_total{code="",state="complete"} 1.0' in metrics
    assert 'prony_job_duration_seconds_count{state="complete"} 1.0' in metrics


def watch(url: str, experiment_id: str) -> Iterator[str]:
    with httpx.stream("GET", f"{url}/api/v1/experiments/{experiment_id}/events", timeout=60) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                yield line.removeprefix("event: ")


def test_a_result_can_bring_the_next_job(server: Running, measure: Callable[[dict[str, Any]], bytes]) -> None:
    client = server.client
    agent_id = enrol(client, "next")
    submit(client, RECIPE + "matrix: {workload.batch_size: [1, 2]}\n")
    lease = client.post("/api/v1/leases", json=asked(agent_id)).raise_for_status().json()
    tar = measure(lease["job"])
    done = client.put(
        f"/api/v1/leases/{lease['id']}/result?next=true&wait_s=10", content=tar, headers=sha256(tar)
    ).json()
    assert done["accepted"] is True
    assert done["lease"]["job"]["id"] != lease["job"]["id"]
    back = client.delete(f"/api/v1/leases/{done['lease']['id']}?reason=enough")
    assert back.status_code == 204
    cancelled = client.post("/api/v1/jobs/batch", json={"action": "cancel", "ids": [done["lease"]["job"]["id"]]})
    assert cancelled.json()["changed"] == [done["lease"]["job"]["id"]]


def test_a_scorer_is_lent_only_to_an_agent_whose_owner_allows_commands(server: Running) -> None:
    client = server.client
    facts = {"schemes": "zoo", "engine": "transformers", "engine.transformers.unit": "cpu"}

    def enrol_for(*kinds: str) -> str:
        told = {**told_of("-".join(kinds)), "capabilities": {"facts": {**facts, "kinds": kinds}}}
        return str(client.post("/api/v1/agents", json=told).raise_for_status().json()["agent"]["id"])

    cautious, open_ = enrol_for("llm"), enrol_for("llm", "script")
    work = 'kind: llm, model: "zoo:llm-1m", engine: transformers, task: summarize, prompts: {scorer: "python mine.py"}'
    text = f"name: scored\nworkload: {{{work}}}\n"
    experiment_id = submit(client, text)
    assert client.post("/api/v1/leases", json=asked(cautious, wait_s=0)).status_code == 204
    assert "start its agent with --kinds llm,script" in client.post("/api/v1/recipes/check", json={"text": text}).text
    lease = client.post("/api/v1/leases", json=asked(open_)).raise_for_status().json()
    assert lease["job"]["experiment_id"] == experiment_id
    client.post("/api/v1/jobs/batch", json={"action": "cancel", "ids": [lease["job"]["id"]]}).raise_for_status()
    client.delete(f"/api/v1/leases/{lease['id']}").raise_for_status()


def test_nothing_that_a_server_writes_is_open_to_others(
    tmp_path: Path, measure: Callable[[dict[str, Any]], bytes]
) -> None:
    """Its home is closed; what lies in it is too, so that a copy of it shows nothing either."""
    home = tmp_path / "home"
    with running(tmp_path, token="the owner's") as server:
        client = server.client
        client.headers["Authorization"] = f"Bearer {read_owner_token(Home(home))}"
        agent_id = enrol(client, "closed")
        submit(client, RECIPE + "matrix: {workload.batch_size: [1, 2]}\n")
        first = client.post("/api/v1/leases", json=asked(agent_id)).raise_for_status().json()
        tar = measure(first["job"])
        finish = f"/api/v1/leases/{first['id']}/result?next=true&wait_s=10"
        second = client.put(finish, content=tar, headers=sha256(tar)).raise_for_status().json()["lease"]
        log = {"events": [], "log": "begun\n"}
        client.post(f"/api/v1/leases/{second['id']}/progress", json=log).raise_for_status()
        client.patch(f"/api/v1/leases/{second['id']}/upload?offset=0", content=b"x").raise_for_status()
        names = {str(path.relative_to(home)): path.stat().st_mode & 0o777 for path in (home, *home.rglob("*"))}
    assert {name: oct(mode) for name, mode in names.items() if mode & 0o077} == {}
    assert {"owner-token", "prony.db"} < set(names)
    assert any(name.endswith("result.json") for name in names)
    assert any(name.startswith("uploads/") for name in names)


def test_a_damaged_result_is_refused_and_the_right_one_taken(
    server: Running, measure: Callable[[dict[str, Any]], bytes]
) -> None:
    client = server.client
    agent_id = enrol(client, "damaged")
    submit(client)
    lease = client.post("/api/v1/leases", json=asked(agent_id)).raise_for_status().json()
    tar = measure(lease["job"])
    path = f"/api/v1/leases/{lease['id']}/result"
    torn = client.put(path, content=tar[:-600], headers=sha256(tar))
    assert 400 <= torn.status_code < 500 or torn.status_code == 502, torn.text
    nonsense = client.put(path, content=b"nonsense", headers=sha256(b"nonsense"))
    assert nonsense.status_code == 422, nonsense.text
    assert client.put(path, headers=sha256(tar)).status_code == 422
    assert client.put(path, content=tar, headers=sha256(tar)).json()["accepted"] is True


def test_an_upload_that_breaks_off_goes_on_where_it_was(server: Running) -> None:
    client = server.client
    agent_id = enrol(client, "torn")
    submit(client)
    lease = client.post("/api/v1/leases", json=asked(agent_id)).raise_for_status().json()
    path = f"/api/v1/leases/{lease['id']}/upload"
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"PATCH {path}?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b"x" * 100)
    wait_for(lambda: 'prony_http_requests_total{operation="upload",status="499"} 1.0' in client.get("/metrics").text)
    offset = client.get(path).json()["offset"]
    assert offset in (0, 100)  # what the system had handed on before it told that the client was gone
    assert client.patch(f"{path}?offset={offset}", content=b"y" * 10).json() == {"offset": offset + 10}
    client.delete(f"/api/v1/leases/{lease['id']}").raise_for_status()
    client.post("/api/v1/jobs/batch", json={"action": "cancel", "state": "waiting"}).raise_for_status()


def test_the_log_is_json_with_the_ids_of_what_it_is_about(server: Running) -> None:
    experiment_id = submit(server.client)
    server.client.get(f"/api/v1/experiments/{experiment_id}", headers={"X-Request-Id": "find-me"})
    server.client.post(f"/api/v1/experiments/{experiment_id}/cancel")
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    (line,) = [one for one in lines if one.get("request_id") == "find-me"]
    assert line["experiment_id"] == experiment_id
    assert (line["operation"], line["status"], line["level"]) == ("experiment", 200, "debug")
    assert [one for one in lines if one["level"] in ("error", "critical")] == []


# Beginning and ending


@pytest.mark.usefixtures("new_interpreters")
def test_it_says_where_it_is_and_leaves_word_while_it_is_there(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        word = json.loads((tmp_path / "home" / "server.json").read_text())
        assert (word["url"], word["pid"]) == (server.url, server.process.pid)
        assert server.client.get("/api/v1/health").json()["ok"] is True
        assert server.stop() == 0
        assert not (tmp_path / "home" / "server.json").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_soon_whoever_still_waits(tmp_path: Path, number: int, code: int) -> None:
    with running(tmp_path) as server, ExitStack() as stack:
        agent_id, experiment_id = enrol(server.client, "a"), submit(server.client)
        lease = server.client.post("/api/v1/leases", json=asked(agent_id)).json()
        waiting = enrol(server.client, "b")
        answers = dict[str, httpx.Response | list[str]]()

        def poll() -> None:
            answers["lease"] = httpx.post(f"{server.url}/api/v1/leases", json=asked(waiting, 60), timeout=70)

        def read() -> None:
            path = f"{server.url}/api/v1/jobs/{lease['job']['id']}/logs?wait_s=60"
            answers["logs"] = httpx.get(path, timeout=70)

        begun = threading.Event()

        def look() -> None:
            with httpx.stream("GET", f"{server.url}/api/v1/experiments/{experiment_id}/events", timeout=70) as stream:
                lines = stream.iter_lines()
                first = next(lines)
                begun.set()
                answers["events"] = [first, *lines]

        threads = [threading.Thread(target=work, daemon=True) for work in (poll, read, look)]
        for thread in threads:
            thread.start()
        # One that says nothing, and one that never ends its request.
        host, port = server.url.removeprefix("http://").split(":")
        for text in (b"", b"POST /api/v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(text)
        assert begun.wait(60)
        wait_for(lambda: "prony_open_waits 3.0" in server.client.get("/metrics").text)
        assert server.stop(number) == code
        for thread in threads:
            thread.join(60)
    lease_answer, logs = answers["lease"], answers["logs"]
    assert isinstance(lease_answer, httpx.Response)
    assert lease_answer.status_code == 204
    assert isinstance(logs, httpx.Response)
    assert (logs.status_code, logs.headers["prony-ended"]) == (200, "false")
    assert answers["events"][0] == "event: snapshot"  # type: ignore[index]


@contextmanager
def with_locked_database(folder: Path) -> Iterator[Running]:
    """A server that waits for what it writes, which has to wait until the block ends."""
    with running(folder) as server, closing(sqlite3.connect(folder / "home" / "prony.db")) as database:
        assert (folder / "home" / "server.json").exists()
        database.execute("BEGIN IMMEDIATE")

        def write(name: str) -> None:
            with suppress(httpx.HTTPError):
                httpx.post(f"{server.url}/api/v1/agents", json=told_of(name), timeout=120)

        for name in "abc":
            threading.Thread(target=write, args=(name,), daemon=True).start()
        wait_for(lambda: re.search(r"prony_writer_backlog [1-9]", server.client.get("/metrics").text) is not None)
        yield server


def test_one_signal_ends_a_server_whose_database_is_locked(tmp_path: Path) -> None:
    with with_locked_database(tmp_path) as server:
        took_s = time_end(server.process, signal.SIGTERM)
        assert took_s is not None
        assert took_s < LONGEST_END_S
        assert server.process.returncode == 3
        assert "stopped by force" in server.log.read_text()
        assert not (tmp_path / "home" / "server.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_by_force_takes_the_address_away_too(tmp_path: Path, number: int) -> None:
    with with_locked_database(tmp_path) as server:
        server.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 60
        while server.process.poll() is None and time.monotonic() < deadline:
            server.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(0.1)
        assert server.process.returncode not in (None, 0)
        assert not (tmp_path / "home" / "server.json").exists()


def test_what_was_submitted_is_there_after_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        experiment_id = submit(server.client)
        server.process.kill()
        server.process.wait()
    with running(tmp_path) as server:
        assert server.client.get(f"/api/v1/experiments/{experiment_id}").json()["counts"]["waiting"] == 1


def test_a_second_server_of_the_same_home_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        code, said = refused(tmp_path, "--port", "0")
        assert code == 3
        assert server.url in said
        assert "PRONY_HOME" in said


def test_it_takes_no_connection_before_its_owner_has_a_token(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(command("--port", str(port)), env=os.environ | {"PRONY_HOME": str(tmp_path)}) as process:
        try:
            with socket.socket() as probe:
                wait_for(lambda: probe.connect_ex(("127.0.0.1", port)) == 0, "the server")
                assert (tmp_path / "owner-token").exists()
        finally:
            process.kill()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = refused(tmp_path, "--port", port)
    assert code == 3
    assert f"127.0.0.1:{port}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--port", "70000"), "not a port"),
        (("--host", "nowhere.invalid"), "not an address"),
        (("--lease-ttl", "30"), "write 30s"),
        (("--lease-ttl", "1ms"), "out of range"),
        (("--database", "nonsense"), "nonsense"),
    ],
)
def test_an_option_that_is_wrong_is_told(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    code, said = refused(tmp_path, *options)
    assert code in (2, 3)
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_where_others_could_reach_it_somebody_is_always_asked(tmp_path: Path, host: str) -> None:
    code, said = refused(tmp_path, "--host", host, "--port", "0", "--no-auth")
    assert code == 2
    assert "--no-auth makes everybody an admin" in " ".join(said.split())


def test_where_others_can_reach_it_every_request_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = admin(tmp_path, monkeypatch)
    with running(tmp_path, "--host", "0.0.0.0", token=secret) as server:
        assert httpx.get(f"{server.url}/api/v1/experiments").status_code == 401
        assert httpx.get(f"{server.url}/api/v1/health").status_code == 200
        assert server.client.get("/api/v1/experiments").is_success
        assert server.client.get("/api/v1/experiments", headers={"Host": "any.example"}).is_success


def test_on_loopback_a_token_is_needed_unless_somebody_says_that_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = admin(tmp_path, monkeypatch)
    with running(tmp_path, "--no-auth") as server:
        assert server.client.get("/api/v1/tokens").is_success
    with running(tmp_path, token=secret) as server:
        assert httpx.get(f"{server.url}/api/v1/tokens").status_code == 401
        assert server.client.get("/api/v1/tokens").is_success


def admin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make an admin's token in a home, as `prony tokens add` does."""
    monkeypatch.setenv("PRONY_HOME", str(Home(folder / "home").create().root))
    with open_access() as access:
        return access.add_token(NewToken(name="ann", role=Role.ADMIN)).secret


def test_many_agents_wait_at_once_and_all_are_served(server: Running) -> None:
    client = server.client
    ids = [enrol(client, f"many-{number}") for number in range(40)]
    found = list[int]()

    def poll(agent_id: str) -> None:
        found.append(httpx.post(f"{server.url}/api/v1/leases", json=asked(agent_id, 60), timeout=90).status_code)

    threads = [threading.Thread(target=poll, args=(agent_id,), daemon=True) for agent_id in ids]
    for thread in threads:
        thread.start()
    submit(client, RECIPE + f"matrix: {{workload.inputs.seed: {list(range(40))}}}\n")
    for thread in threads:
        thread.join(90)
    assert found == [200] * 40


# Several servers on one database


def test_two_servers_share_a_database_and_wake_each_others_agents(tmp_path: Path, postgres_url: str) -> None:
    with (
        running(tmp_path, "--database", postgres_url) as one,
        running(tmp_path, "--database", postgres_url) as two,
    ):
        agent_id = enrol(one.client, "shared")
        found = list[httpx.Response]()
        asking = threading.Thread(
            target=lambda: found.append(one.client.post("/api/v1/leases", json=asked(agent_id, 60), timeout=90)),
            daemon=True,
        )
        asking.start()
        experiment_id = submit(two.client)
        asking.join(90)
        assert found[0].json()["job"]["experiment_id"] == experiment_id
        events = list[str]()
        watching = threading.Thread(target=lambda: events.extend(watch(one.url, experiment_id)), daemon=True)
        watching.start()
        wait_for(lambda: events[:1] == ["snapshot"])
        lease_id = found[0].json()["id"]
        two.client.delete(f"/api/v1/leases/{lease_id}").raise_for_status()
        two.client.post(f"/api/v1/experiments/{experiment_id}/cancel").raise_for_status()
        watching.join(60)
        assert "experiment" in events
        assert one.client.get(f"/api/v1/experiments/{experiment_id}").json()["experiment"]["state"] == "cancelled"
        assert two.stop() == 0
        assert one.client.get("/api/v1/health").json()["ok"] is True


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\U0001f600" * 50])
def test_text_that_a_database_may_not_like_is_no_fault(tmp_path: Path, postgres_url: str, text: str) -> None:
    with running(tmp_path, "--database", postgres_url) as server:
        client = server.client
        for method, path, body in (
            ("POST", "/api/v1/experiments", {"text": f"name: '{text}'"}),
            ("POST", "/api/v1/jobs/batch", {"action": "cancel", "ids": [text]}),
            ("POST", "/api/v1/jobs/batch", {"action": "cancel", "experiment": text}),
            ("POST", "/api/v1/agents", {"name": "a", "device_key": text, "incarnation": "i"}),
            ("POST", "/api/v1/agents", {"name": "a", "device_key": "d", "incarnation": "i",
                                        "capabilities": {"facts": {text: text}, "version": text}}),
            ("POST", "/api/v1/tokens", {"name": text, "role": "viewer"}),
            ("DELETE", f"/api/v1/leases/x?reason={quote(text, errors='surrogatepass')}", None),
            ("GET", f"/api/v1/experiments?name={quote(text, errors='surrogatepass')}", None),
        ):  # fmt: skip
            content = None if body is None else json.dumps(body)
            response = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
            assert response.status_code < 500, (path, response.text)
