"""Commands that load a service themselves: what they wrote down, how they fail, and that nothing of them stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import InputError
from prony.instruments.request_lines import frame_of
from prony.instruments.requests import request_schema
from prony.ports.driver import Endpoint
from prony.runner.commands import CommandOrder, Done, run_commands
from servers.process import wait_gone
from servers.waiting import wait_for

ENDPOINT = Endpoint(host="127.0.0.1", port=6379, user="me", password="secret")


def run(
    tmp_path: Path, command: str, *, users: int = 2, limit_s: float = 120, stop: Callable[[], bool] = lambda: False
) -> Done:
    order = CommandOrder(
        ["bash", "-c", command], {"OWN": "it's"}, ENDPOINT, users, limit_s, "job", tmp_path / "0000", tmp_path / "logs"
    )
    return run_commands(order, stop, lambda: None)


def row(number: int, **more: object) -> str:
    told = {
        "request_id": number,
        "timestamp_start": 1700000000,
        "timestamp_end": 1700000001,
        "latency_s": 0.25,
        "success": True,
    }
    return json.dumps(told | more)


def test_what_a_command_writes_down_are_the_requests(tmp_path: Path) -> None:
    lines = "\n".join(
        [json.dumps({"benchmark_id": "x", "test_start": "now"}), row(1), row(2, success=False, error="set_failed")]
    )
    done = run(tmp_path, f"cat > $BENCHMARK_OUTPUT_DIR/requests.jsonl <<'E'\n{lines}\nE")
    assert done.failure is None
    assert len(done.log.lines) == 4
    frame = frame_of(done.log, done.begins, done.ends)
    assert dict(frame.schema) == request_schema()
    assert frame["cause"].cast(str).to_list().count("status") == 2
    assert sorted(set(frame["client"])) == [0, 1]
    assert done.notes["clients"].startswith(
        "2 runs of the command recorded 4 requests, their timestamps are whole seconds"
    )


def test_two_clients_never_share_a_file(tmp_path: Path) -> None:
    done = run(
        tmp_path, f"for i in $(seq 200); do echo '{row(1)}' >> $BENCHMARK_OUTPUT_DIR/requests.jsonl; done", users=4
    )
    assert (len(done.log.lines), done.log.unread) == (800, 0)


def test_a_command_that_writes_nothing_has_no_request(tmp_path: Path) -> None:
    done = run(tmp_path, "true", users=3)
    assert (done.failure, done.log.lines, done.silent) == (None, (), 3)
    assert frame_of(done.log, done.begins, done.ends).height == 0
    assert done.begin_ns < done.end_ns
    assert done.notes["clients"] == "3 runs of the command recorded no request: there are no results"


def test_each_client_is_known_by_what_it_wrote_and_who_wrote_nothing_is_counted(tmp_path: Path) -> None:
    write = f"echo '{row(1)}' > $BENCHMARK_OUTPUT_DIR/requests.jsonl"
    done = run(tmp_path, f"case $CLIENT_NAME in *-2) ;; *) {write};; esac", users=3)
    assert (sorted(line.client for line in done.log.lines), done.silent) == ([0, 2], 1)
    assert ", 1 of them none" in done.notes["clients"]


def test_what_was_written_before_the_time_was_over_is_a_load_that_was_cut(tmp_path: Path) -> None:
    done = run(tmp_path, f"echo '{row(1)}' > $BENCHMARK_OUTPUT_DIR/a.jsonl; sleep 600", users=2, limit_s=2)
    assert (done.failure, done.is_cut, len(done.log.lines)) == (None, True, 2)


def test_a_command_is_told_what_it_loads_and_who_it_is(tmp_path: Path) -> None:
    run(tmp_path, 'echo "$SERVICE_HOSTNAME $SERVICE_PORT $SERVICE_URL $SERVICE_USER $CLIENT_NAME $OWN"', users=1)
    said = (tmp_path / "logs" / "client-job-1.log").read_text()
    assert said == "127.0.0.1 6379 http://127.0.0.1:6379 me client-job-1 it's\n"


def test_a_client_that_fails_fails_the_run_with_its_last_words(tmp_path: Path) -> None:
    done = run(tmp_path, f"echo '{row(1)}' > $BENCHMARK_OUTPUT_DIR/requests.jsonl; echo no luck; exit 3", users=2)
    assert done.failure is not None
    assert done.failure.code == "client_failed"
    assert "2 of 2 clients failed, the first with exit code 3; its last output: no luck" in done.failure.message
    assert len(done.log.lines) == 2


def test_a_client_that_takes_too_long_is_ended_with_all_that_came_of_it(tmp_path: Path) -> None:
    done = run(tmp_path, "sleep 600 & echo $! > pid; wait", users=1, limit_s=5)
    assert done.failure is not None
    assert "timed out after 5 s" in done.failure.message
    pid = int((tmp_path / "0000" / "client-job-1" / "pid").read_text())
    assert wait_gone(pid)


def test_what_leaves_its_session_is_ended_too(tmp_path: Path) -> None:
    run(tmp_path, "setsid sleep 600 & echo $! > pid", users=1)
    pid = int((tmp_path / "0000" / "client-job-1" / "pid").read_text())
    assert wait_gone(pid)


def test_commands_end_when_the_one_who_started_them_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from prony.ports.driver import Endpoint; "
        "from prony.runner.commands import CommandOrder, run_commands; here = Path(sys.argv[1]); "
        "command = ['bash', '-c', 'sleep 600 & echo $! > pid; wait']; "
        "order = CommandOrder(command, {}, Endpoint(), 1, 600, 'job', here / '0', here); "
        "run_commands(order, lambda: False, lambda: None)"
    )
    runner = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    told = tmp_path / "0" / "client-job-1" / "pid"
    wait_for(lambda: told.exists() and bool(told.read_text().strip()))
    pid = int(told.read_text())
    runner.kill()
    runner.wait()
    assert wait_gone(pid)


def test_a_run_that_is_stopped_ends_at_once_and_keeps_what_there_was(tmp_path: Path) -> None:
    command = f"echo '{row(1)}' > $BENCHMARK_OUTPUT_DIR/requests.jsonl; touch written; sleep 600"
    done = run(tmp_path, command, users=1, stop=lambda: any(tmp_path.rglob("written")))
    assert len(done.log.lines) == 1


def test_too_many_users_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the limit is 1000"):
        run(tmp_path, "true", users=1001)
