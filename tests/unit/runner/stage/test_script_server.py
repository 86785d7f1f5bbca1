"""The server that a script asks: ready before the script begins, watched while it runs, gone after it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from prony.errors import SutError
from prony.kinds.script.runner import staging as server_module
from prony.kinds.script.runner.staging import ServerOfScript, variables_of
from prony.kinds.script.schema import ScriptServer
from prony.model.result import ResultState
from prony.ports.driver import Endpoint
from servers.ports import free_port
from servers.process import wait_all_gone

from .staged_runs import Runs, why

SERVE = """
import http.server, sys, os
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        good = Handler.asked > int(sys.argv[2])
        print(f"asked {Handler.asked}", flush=True)
        if self.path == "/die": os._exit(3)
        self.send_response(200 if good else 503); self.send_header("Content-Length", "0"); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
ASK = """
import http.client, json, os, sys
where = http.client.HTTPConnection(os.environ["INFERENCE_SERVER_HOST"], int(os.environ["INFERENCE_SERVER_PORT"]))
where.request("GET", sys.argv[1]); print(json.dumps({"status": where.getresponse().status}))
"""


@pytest.fixture
def port() -> int:
    return free_port()


def serving(port: int, bad: int = 0, **more: Any) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", SERVE, str(port), str(bad)], "ports": [port]} | more


def test_the_script_begins_when_the_probe_says_so_and_the_server_goes_with_it(runs: Runs, port: int) -> None:
    metrics = [{"name": "asked", "pattern": "asked ([0-9]+)"}]
    readiness = {"path": "/ping", "period": "1ms", "success_threshold": 2}
    result = runs.run(
        command=[sys.executable, "-c", ASK, "/x"], server=serving(port, 3, readiness=readiness, metrics=metrics)
    )
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["status"] == [200]
    # Three bad answers, two good ones in a row, then the script's own.
    assert runs.told()["asked"] == [1, 2, 3, 4, 5, 6]
    assert "asked 6" in runs.log("run-0000.server.log")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)


def test_without_a_probe_the_script_begins_when_somebody_listens(runs: Runs, port: int) -> None:
    result = runs.run(command=[sys.executable, "-c", ASK, "/x"], server=serving(port))
    assert (result.state, runs.told()["status"]) == (ResultState.COMPLETE, [200])


def test_each_run_has_a_fresh_server(runs: Runs, port: int) -> None:
    metrics = [{"name": "asked", "pattern": "asked ([0-9]+)"}]
    runs.run(command=[sys.executable, "-c", ASK, "/x"], server=serving(port, metrics=metrics), repeats=2)
    assert runs.told()["asked"] == [1, 1]


def test_a_server_that_never_becomes_ready_fails_the_run_with_its_reason(runs: Runs, port: int) -> None:
    mark = runs.base / "ran"
    readiness = {"path": "/ping", "period": "1ms", "failure_threshold": 3}
    result = runs.run(command=["touch", str(mark)], server=serving(port, 99, readiness=readiness))
    assert why(result).code == "service_timeout"
    assert "not ready after 3 checks: /ping " in why(result).message
    assert not mark.exists()


def test_a_server_that_cannot_start_fails_the_run_with_its_words(runs: Runs, port: int) -> None:
    server = {"command": [sys.executable, "-c", "raise SystemExit('no model here')"], "ports": [port]}
    result = runs.run(command=["true"], server=server)
    assert why(result).code == "service_failed"
    assert "no model here" in why(result).message


def test_a_server_that_dies_ends_the_script_with_it(runs: Runs, port: int) -> None:
    code = ASK.replace('print(json.dumps({"status": where.getresponse().status}))', "import time; time.sleep(600)")
    result = runs.run(command=[sys.executable, "-c", code, "/die"], server=serving(port))
    assert why(result).code == "service_failed"
    assert "exit code 3" in why(result).message


def test_a_failing_script_leaves_no_server_behind(runs: Runs, port: int) -> None:
    result = runs.run(command=["false"], server=serving(port))
    assert why(result).code == "script_exit"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)
    found = [one for one in psutil.process_iter(["cmdline"]) if str(port) in (one.info["cmdline"] or ())]
    assert wait_all_gone(found) == []


def test_a_port_that_somebody_has_is_told_before_anything_starts(runs: Runs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = runs.run(command=["true"], server=serving(taken.getsockname()[1]))
    assert why(result).code == "server_port_taken"


def test_the_server_finds_the_scripts_and_its_models(runs: Runs, port: int) -> None:
    runs.write("scripts/serve.py", SERVE.replace("import http", "print(open(sys.argv[3]).read())\nimport http", 1)
               .replace("print", "import sys; print", 1))  # fmt: skip
    model = runs.write("model.txt", "the weights")
    source = {"source": str(model), "path": "/models/model.txt"}
    server = {
        "command": f"{sys.executable} serve.py {port} 0 $(MODEL)",
        "environment": {"MODEL": "/models/model.txt"},
        "ports": [port],
        "sources": [source],
    }
    result = runs.run(command=[sys.executable, "-c", ASK, "/x"], directory=str(runs.base / "scripts"), server=server)
    assert result.state is ResultState.COMPLETE, result.failure
    assert "the weights" in runs.log("run-0000.server.log")


def test_all_ports_are_in_the_environment() -> None:
    assert variables_of(ScriptServer(command="x", ports=(80, 81, 82))) == {
        "INFERENCE_SERVER_HOST": "127.0.0.1",
        "INFERENCE_SERVER_PORT": "80",
        "INFERENCE_SERVER_PORT_1": "81",
        "INFERENCE_SERVER_PORT_2": "82",
    }


def test_the_delay_and_the_period_of_a_probe_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    clock = [0.0]

    def answers(*_: object) -> str:
        asked.append(clock[0])
        return "not yet"

    monkeypatch.setattr(server_module, "_answers", answers)
    readiness = {"path": "/", "initial_delay": "3s", "period": "2s", "failure_threshold": 3}
    options = ScriptServer.model_validate({"command": "x", "ports": (80,), "readiness": readiness})
    service = ServerOfScript(lambda _: None, now=lambda: clock[0])  # type: ignore[arg-type, return-value]

    def wait() -> None:
        while clock[0] < 60:
            service.ready(Endpoint(host="127.0.0.1", port=80), options)
            clock[0] += 0.5

    with pytest.raises(SutError, match="after 3 checks"):
        wait()
    assert asked == [3.0, 5.0, 7.0]


def test_a_stop_while_the_server_starts_is_heard(runs: Runs, port: int, tmp_path: Path) -> None:
    runs.stop_asked = (tmp_path / "result-1" / "logs" / "run-0000.server.log").exists
    result = runs.run(command=["true"], server=serving(port, 99, readiness={"path": "/", "period": "1ms"}))
    assert result.state is ResultState.PARTIAL
