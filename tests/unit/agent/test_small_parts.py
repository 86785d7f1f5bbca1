"""The parts that need nobody else: states, metrics, logs, the policy, and the facts that are offered."""

from __future__ import annotations

import asyncio
import errno
import io
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import cast

import pytest

from prony import agent
from prony.agent import capabilities, checks, worker
from prony.agent.agent import AgentOwner
from prony.agent.capabilities import CapabilityScanner
from prony.agent.checks import AgentCheck, ServerConnection
from prony.agent.logs import AgentLog
from prony.agent.metrics import KNOWN, AgentMetrics, serve_metrics
from prony.agent.settings import DEFAULT_SERVER, AgentSettings, model_policy, token_from
from prony.agent.spool import Spool
from prony.agent.worker import AgentCondition, AgentContext, Worker
from prony.errors import ConflictError, InputError, PronyError, StoreError, TransportError
from prony.instruments.device import detect
from prony.kinds.script.schema import ScriptWorkload
from prony.model.agent import AgentState
from prony.model.calibration import Calibration
from prony.model.device import EngineReport
from prony.ports.agent_link import ServerLink
from prony.ports.models import AGENT_POLICY
from prony.store.home import Home
from prony.store.store import Store

from .conftest import MakeLease
from .small_server import lines_of

# States


def test_an_agent_goes_from_job_to_job_by_the_table() -> None:
    moves: list[tuple[AgentState, AgentState]] = []
    condition = AgentCondition(lambda before, after: moves.append((before, after)))
    for _ in range(2):
        condition.to(AgentState.BUSY)
        condition.to(AgentState.CLEANUP)
        condition.rest()
    assert [after.value for _, after in moves] == ["busy", "cleanup", "active"] * 2


def test_what_the_table_does_not_allow_is_refused() -> None:
    condition = AgentCondition()
    with pytest.raises(ConflictError, match="cannot become cleanup"):
        condition.to(AgentState.CLEANUP)


def test_one_that_drains_does_not_stop_draining_by_working() -> None:
    condition = AgentCondition()
    condition.to(AgentState.BUSY)
    condition.to(AgentState.DRAINING)
    condition.to(AgentState.CLEANUP)
    condition.rest()
    assert condition.state is AgentState.DRAINING
    condition.to(AgentState.ACTIVE)  # its server said so
    assert not condition.is_draining


# Metrics


def test_metrics_are_prometheus_text(metrics: AgentMetrics) -> None:
    metrics.count("jobs_total", state="complete")
    metrics.count("jobs_total", state="complete")
    metrics.set("spool_bytes", 12345678901)
    metrics.count("results_refused_total", code='a"b\\c\nd')
    text = metrics.text()
    assert 'prony_agent_jobs_total{state="complete"} 2\n' in text
    assert "prony_agent_spool_bytes 12345678901\n" in text
    assert r'{code="a\"b\\c\nd"} 1' in text


def test_metrics_can_be_read_by_the_parser_of_prometheus(metrics: AgentMetrics) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    metrics.count("results_refused_total", code='a"b\\c\nd')
    families = {family.name: family for family in parser.text_string_to_metric_families(metrics.text())}
    assert families["prony_agent_results_refused"].samples[0].labels == {"code": 'a"b\\c\nd'}
    assert len(families) == len(KNOWN)


def test_every_metric_is_on_the_page_about_agents() -> None:
    text = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
    assert [name for name in KNOWN if f"| `prony_agent_{name}` |" not in text] == []


def test_metrics_are_served_and_nothing_else_is(metrics: AgentMetrics) -> None:
    def fetch(url: str, data: bytes | None = None) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as exc:
            return exc.code, ""

    async def ask() -> list[tuple[int, str]]:
        async with serve_metrics(metrics, "127.0.0.1", 0) as port:
            base = f"http://127.0.0.1:{port}"
            return [
                await asyncio.to_thread(fetch, f"{base}/metrics"),
                await asyncio.to_thread(fetch, f"{base}/agent.json"),
                await asyncio.to_thread(fetch, f"{base}/metrics", b"x"),
            ]

    metrics.set("connected", 1)
    (good, text), (missing, _), (outgoing, _) = asyncio.run(ask())
    assert (good, missing, outgoing) == (200, 404, 405)
    assert "prony_agent_connected 1" in text


def test_noise_on_the_port_of_the_metrics_harms_nobody(metrics: AgentMetrics) -> None:
    async def ask() -> bytes:
        async with serve_metrics(metrics, "127.0.0.1", 0) as port:
            for noise in (b"", b"\x00\xff\r\n\r\n", b"x" * 200_000):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(noise)
                writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            return await reader.read()

    assert asyncio.run(ask()).startswith(b"HTTP/1.1 200 OK")


def test_a_port_that_is_taken_is_told(metrics: AgentMetrics) -> None:
    async def twice() -> None:
        async with serve_metrics(metrics, "127.0.0.1", 0) as port, serve_metrics(metrics, "127.0.0.1", port):
            pass

    with pytest.raises(StoreError, match="cannot listen"):
        asyncio.run(twice())


# Logs


def test_every_line_carries_the_ids_that_it_was_given(log: AgentLog, said: io.StringIO) -> None:
    about = log.bound(job_id="e1-001", experiment_id="e1")
    about.info("job started", title="small")
    about.warning("result not uploaded yet", reason="two\nlines", hint="")
    first, second = lines_of(said.getvalue())
    assert (first["event"], first["level"], first["job_id"], first["experiment_id"]) == (
        "job started", "info", "e1-001", "e1",
    )  # fmt: skip
    assert second["reason"] == "two\nlines"
    assert "hint" not in second


def test_a_line_for_people_is_one_line() -> None:
    out = io.StringIO()
    log = AgentLog(out=out)
    log.debug("not shown")
    log.info("job\nstarted", title="two words", took=1.23456, state="ok")
    [line] = out.getvalue().splitlines()
    assert line.endswith('info    job started  title="two words" took=1.235 state=ok')


def test_a_log_that_nobody_reads_any_more_stops_nothing() -> None:
    class FullOnce(io.StringIO):
        failures = 0

        def write(self, text: str) -> int:
            if not self.failures:
                self.failures += 1
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(text)

    out = FullOnce()
    log = AgentLog(out=out)
    log.info("nobody hears")
    log.info("somebody hears again")
    assert out.failures == 1
    [line] = out.getvalue().splitlines()
    assert line.endswith("somebody hears again")
    out.close()
    log.info("nobody hears")
    assert out.closed


# What it needs


def test_an_agent_needs_nothing_of_what_a_server_needs() -> None:
    modules = [f"prony.agent.{path.stem}" for path in Path(agent.__file__).parent.glob("[!_]*.py")]
    blocked = ("fastapi", "starlette", "uvicorn", "structlog", "prometheus_client", "psycopg", "onnxruntime", "onnx")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n" + "\n".join(f"import {one}" for one in modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert len(modules) > 15
    assert done.returncode == 0, done.stderr


# What the owner allows


def test_an_agent_is_cautious_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    assert model_policy({}) == AGENT_POLICY
    assert model_policy({"PRONY_MODEL_SCHEMES": "zoo"}).schemes == ("zoo",)
    assert model_policy({"PRONY_MODEL_FOLDERS": "/models"}).schemes == ("zoo", "https", "file")
    assert model_policy({"PRONY_MODEL_FOLDERS": "/models", "PRONY_MODEL_SCHEMES": "zoo"}).schemes == ("zoo",)
    assert model_policy({"PRONY_MODEL_SCHEMES": "zoo"}, schemes="https, file").schemes == ("https", "file")
    assert not AGENT_POLICY.private
    assert model_policy({}, private="allow").private
    named = model_policy({}, folders=[tmp_path])
    assert named.folders == (tmp_path,)
    assert named.schemes == ("zoo", "https", "file")
    assert model_policy({}, schemes="zoo", folders=[tmp_path]).schemes == ("zoo",)
    with pytest.raises(InputError, match="PRONY_MODEL_PRIVATE"):
        model_policy({"PRONY_MODEL_PRIVATE": "maybe"})


class NoScripts:
    """A server that has no answer for who asks for a script."""

    def __init__(self) -> None:
        self.returned: list[str] = []

    async def scripts(self, *_: object) -> None:
        raise TransportError("cannot reach the server")

    async def hand_back(self, _: str, reason: str) -> None:
        self.returned.append(reason)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_job_goes_back_with_the_true_reason(
    is_full: bool, home: Home, spool: Spool, a_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_FETCH_S", 0.05)
    script = ScriptWorkload(kind="script", command="true", directory=f"sha256:{'a' * 64}")
    plain = a_lease()
    lease = plain.model_copy(update={"job": plain.job.model_copy(update={"workload": script})})
    if is_full:
        spool.root.parent.mkdir(parents=True, exist_ok=True)
        spool.root.write_text("no folder")
    server, said = NoScripts(), io.StringIO()
    log = AgentLog(form="json", out=said)

    async def carry_out() -> None:
        context = AgentContext(home, cast("ServerLink", server), AgentSettings(kinds=("script",)), spool, log=log)
        with pytest.raises(PronyError):
            await Worker(context).carry_out(lease)

    asyncio.run(carry_out())
    why = "it cannot be stored on the agent's disk" if is_full else "its scripts could not be fetched from the server"
    assert [reason.partition(":")[0] for reason in server.returned] == [why]
    assert f"job returned: {why}" in [line["event"] for line in lines_of(said.getvalue())]


def test_what_a_wrong_clock_means_is_told_though_it_is_no_failure(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reach(server: str) -> ServerConnection:
        return ServerConnection(server, 200, "1.0", 0.5, 90.0, 1.0)

    async def know(*_: object) -> AgentCheck:
        return AgentCheck("token", True, "none")

    monkeypatch.setattr(checks, "_connection", reach)
    monkeypatch.setattr(checks, "_token", know)
    owner = AgentOwner(home, AgentSettings(), server="http://127.0.0.1:1")
    (clock,) = [one for one in asyncio.run(checks._server(owner)) if one.name == "clock"]
    assert clock.ok
    assert clock.detail.endswith("leases are not affected, but times in logs will not match")


def test_a_token_comes_from_the_file_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" secret\n")
    assert token_from(file, {"PRONY_TOKEN": "other"}) == "secret"
    assert token_from(None, {"PRONY_TOKEN": "other"}) == "other"
    assert token_from(None, {}) is None
    file.write_text("\n")
    with pytest.raises(InputError, match="is empty") as caught:
        token_from(file, {})
    assert "prony tokens add" in caught.value.hint
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="it is not text"):
        token_from(file, {})
    with pytest.raises(InputError, match="cannot read the token") as caught:
        token_from(tmp_path / "missing", {})
    assert caught.value.hint == "check the path and its permissions"


def test_without_a_word_the_server_is_looked_for_where_one_listens_by_default() -> None:
    from argparse import ArgumentParser

    from prony.cli.commands.server import arguments

    parser = ArgumentParser()
    arguments(parser)
    options = parser.parse_args([])
    assert f"http://{options.host}:{options.port}" == DEFAULT_SERVER


def test_what_is_offered_changes_with_the_cache_and_the_engines(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def inspect(place: Home) -> list[EngineReport]:
        starts.append(place)
        return [EngineReport(name="null", python="python", state="ready", version="1")]

    monkeypatch.setattr(capabilities, "inspect_engines", inspect)
    offering = CapabilityScanner(home, AgentSettings(labels={"room": "lab2"}, device_name="bench-7"))
    first = offering.look()
    assert first.facts["label.room"] == "lab2"
    assert first.facts["device"] == "bench-7"
    assert first.facts["schemes"] == ("zoo", "https")
    assert first.facts["kinds"] == ("model",)
    assert first.facts["engine"] == ("null",)
    assert offering.look() == first
    (home.cache / "zoo").mkdir()
    (home.cache / "zoo" / "tiny-1.onnx").write_bytes(b"x")
    assert offering.look().facts["model"] == ("zoo:tiny",)
    assert len(starts) == 1
    (home.engines / "torch").mkdir()
    (home.engines / "torch" / "interpreter.json").write_text("{}")
    offering.look()
    assert len(starts) == 2


def test_what_is_offered_has_the_conditions_of_its_begin_and_the_newest_calibration(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "inspect_engines", lambda _: [])
    offering = CapabilityScanner(home, AgentSettings())
    first = offering.look()
    assert first.calibration is None
    assert first.state is not None
    assert {"governor", "memory"} & {one.code for one in first.state.conditions}
    assert first.state.values == {}
    calibration = Calibration(
        id="c1", hardware_id=detect().hardware_id, software_id="s", taken_at=first.state.taken_at, figures={}
    )
    with Store.open(home) as store:
        store.save_calibration(calibration)
    again = offering.look()
    assert again.calibration == calibration
    assert again.state == first.state
