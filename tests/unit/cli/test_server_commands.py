"""Commands that ask a server, against one that answers what it is told to."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from analyse.compare.sides import entry

from prony.cli.main import main
from prony.cli.output import print_columns, print_json, print_note, print_text
from prony.model.agent import AgentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.place import Demand, Lack
from prony.model.queue import Attempt, Compatibility, ExperimentView, Fit, JobDetail, Lot, LotFit, LotView, Queue
from prony.recipe import loads
from servers.canned import Answer, Canned, document, problem, stream
from servers.documents import AT, RECIPE, agent, job, page, snapshot, view

DEMAND = Demand(where={"gpu.memory_gib": ">=24", "os": ["linux", "darwin"]}, engine="onnxruntime", unit="cuda")


def prony(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code, capsys.readouterr().err
    return capsys.readouterr().out


def prony_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return json.loads(prony(capsys, *words, "--json", code=code))


def results_of(made: ExperimentView, *entries: Entry) -> Answer:
    return document(ExperimentData(experiment=made.experiment, entries=entries).model_dump_json())


# Lists


def test_jobs_are_filtered_by_what_a_person_calls_things(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /experiments", document(page(view("e1r98"))))
    server.at("GET /agents", document(page(agent("a1", "lab-1"), agent("a2", "lab-2"))))
    server.at("GET /jobs", document(page(job(state="leased", agent_id="a2"), following=None)))
    words = ("--state", "leased", "--experiment", "last", "--agent", "lab-2", "--label", "who=me", "-n", "7")
    table = prony(capsys, "jobs", *words)
    assert "e1-001  leased  a2" in table
    assert server.requests[-1].query == {
        "state": ["leased"],
        "experiment": ["e1r98"],
        "agent": ["a2"],
        "label": ["who=me"],
        "limit": ["7"],
    }


def test_a_long_list_is_fetched_page_by_page(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /jobs", document(page(job("e1-002"), following="c")), document(page(job("e1-001"))))
    assert [one["id"] for one in prony_json(capsys, "jobs", "--limit", "900")] == ["e1-002", "e1-001"]
    assert [request.query.get("cursor") for request in server.requests] == [None, ["c"]]
    assert [request.query["limit"] for request in server.requests] == [["500"], ["500"]]


def test_one_job_is_shown_with_every_attempt(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = loads(RECIPE, name="small.yaml")
    detail = JobDetail(
        queued=job("e1r98-001", state="failed", reason="it crashed"),
        job=recipe.jobs("e1r98")[0],
        attempts=(Attempt(number=1, agent_id="a1", state="lost", leased_at=AT, ended_at=AT, reason="not heard of"),),
    )
    server.at("GET /experiments", document(page(view("e1r98"))))
    server.at("GET /jobs/e1r98-001", document(detail.model_dump_json()))
    shown = prony(capsys, "jobs", "e1r-001")
    assert "failed: it crashed" in shown
    assert "not heard of" in shown
    assert prony_json(capsys, "jobs", "e1r-001")["attempts"][0]["state"] == "lost"


def test_a_label_without_a_value_is_refused(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "--label", "who"]) == 2
    assert "who" in capsys.readouterr().err
    assert server.requests == []


def test_the_queue_tells_what_each_lot_wants_and_why_it_waits(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    lot = LotView(
        lot=Lot(id="l", experiment_id="e1", demand=DEMAND, created_at=AT),
        experiment_name="small",
        waiting=3,
        leased=1,
        reason="no agent fits",
    )
    server.says(document(Queue(lots=(lot,), waiting=3, leased=1).model_dump_json()))
    table = prony(capsys, "queue")
    assert "engine=onnxruntime unit=cuda gpu.memory_gib>=24 os=linux|darwin" in table
    assert "no agent fits" in table
    assert prony_json(capsys, "queue")["waiting"] == 3


def test_a_server_s_list_has_the_keys_of_the_list_here(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.says(document(page(view("e1", "failed", complete=1, failed=1))))
    (row,) = prony_json(capsys, "list", "--state", "failed")
    assert {"id": "e1", "name": "small", "state": "failed", "job_count": 2, "jobs_failed": 1}.items() <= row.items()
    assert "e1  small  failed  1/2" in prony(capsys, "list")


# Agents


def test_an_agent_is_drained_by_its_name(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /agents", document(page(agent("a1", "lab-1"), agent("a2", "lab-11"))))
    server.at("POST /agents/a1/drain", document(agent("a1", "lab-1", "draining").model_dump_json()))
    assert prony(capsys, "agents", "drain", "lab-1") == "lab-1 (a1) is draining\n"
    assert "matches 2 agents" in prony_json(capsys, "agents", "drain", "lab", code=2)["error"]["message"]
    assert prony_json(capsys, "agents", "reset", "nobody", code=2)["error"]["code"] == "not_found"


def test_an_agent_is_removed(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /agents", document(page(agent())))
    server.at("DELETE /agents/a1", Answer(status=204))
    assert prony_json(capsys, "agents", "remove", "a1") == {"removed": "a1"}


@pytest.mark.parametrize("state", AgentState)
def test_agents_are_listed_by_every_state_that_they_can_have(
    server: Canned, capsys: pytest.CaptureFixture[str], state: AgentState
) -> None:
    server.at("GET /agents", document(page(agent("a1", "lab-1", state.value))))
    assert "lab-1" in prony(capsys, "agents", "--state", state.value)
    assert server.requests[-1].query["state"] == [state.value]


def test_agents_are_checked_against_a_recipe(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    lacks = (Lack(fact="gpu.memory_gib", wanted=">=24"),)
    fit = Fit(agent_id="a1", agent_name="lab-1", state=AgentState.ACTIVE, fits=False, lacks=lacks)
    found = Compatibility(lots=(LotFit(demand=DEMAND, jobs=2, agents=(fit,)),), runnable=False)
    server.says(document(found.model_dump_json()))
    shown = prony(capsys, "agents", "check", str(tmp_path / "small.yaml"), "--set", "measure.runs=3", code=1)
    assert "gpu.memory_gib >=24 (has none)" in shown
    sent = json.loads(server.requests[0].body)
    assert (sent["name"], sent["overrides"], sent["text"]) == ("small.yaml", ["measure.runs=3"], RECIPE)


# One job or experiment


def test_cancel_says_which_of_the_two_it_was(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("POST /jobs/e1-001/cancel", document(job(state="leased", agent_id="a1").model_dump_json()))
    assert prony(capsys, "cancel", "e1-001") == "job e1-001 was asked to stop on a1\n"
    server.at("GET /experiments", document(page(view("e1"))))
    server.at("POST /experiments/e1/cancel", document(view(state="cancelled", cancelled=2).model_dump_json()))
    assert prony(capsys, "cancel", "last") == "experiment e1 is cancelled: 2 cancelled\n"
    assert prony_json(capsys, "cancel", "e")["kind"] == "experiment"


def test_retry_takes_an_abbreviated_job(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    detail = JobDetail(queued=job(), job=loads(RECIPE, name="small.yaml").jobs("e1")[0])
    server.at("GET /experiments", document(page(view("e1"))))
    server.at("GET /jobs/e1-001", document(detail.model_dump_json()))
    server.at("POST /jobs/e1-001/retry", document(job().model_dump_json()))
    assert prony(capsys, "retry", "last-001") == "job e1-001 is waiting\n"
    server.at("POST /jobs/e1-001/retry", document(job(state="leased", agent_id="a1").model_dump_json()))
    assert prony(capsys, "retry", "e1-001") == "job e1-001 is running again on a1\n"  # an agent waited for it
    assert "no job and no experiment 'zz'" in prony_json(capsys, "retry", "zz", code=2)["error"]["message"]


def test_an_ambiguous_beginning_names_the_candidates(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /experiments", document(page(view("e1"), view("e2"))))
    error = prony_json(capsys, "show", "e", code=2)["error"]
    assert error["code"] == "ambiguous"
    assert "e1, e2" in error["message"]


# Logs


def log(text: str, offset: int, *, ended: bool = False) -> Answer:
    return Answer(text.encode(), headers={"Prony-Next-Offset": str(offset), "Prony-Ended": str(ended).lower()})


@pytest.fixture
def one_job(server: Canned) -> Canned:
    detail = JobDetail(queued=job(), job=loads(RECIPE, name="small.yaml").jobs("e1")[0])
    server.at("GET /jobs/e1-001", document(detail.model_dump_json()))
    return server


def test_a_log_is_printed_as_far_as_it_goes(one_job: Canned, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    one_job.at("GET /jobs/e1-001/logs", log("one\n", 4), log("two\n", 8), log("", 8))
    assert main(["logs", "e1-001", "--attempt", "2"]) == 0
    assert capfdbinary.readouterr().out == b"one\ntwo\n"
    read = [request for request in one_job.requests if request.path.endswith("/logs")]
    assert read[-1].query == {"attempt": ["2"], "offset": ["8"], "wait_s": ["0.0"]}


def test_a_log_never_acts_on_a_terminal_even_behind_a_pipe(
    one_job: Canned, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    cut = "caf\u00e9\r\n".encode()
    pieces = [log("\x1b[2J\x1b]0;owned\x07red\u009b31m\b\n", 9), Answer(cut[:4], headers=log("", 13).headers)]
    one_job.at("GET /jobs/e1-001/logs", *pieces, Answer(cut[4:], headers=log("", 17).headers), log("", 17))
    assert main(["logs", "e1-001"]) == 0
    assert capfdbinary.readouterr().out == b"red\n" + cut


def test_columns_notes_errors_and_json_never_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[31m\u009b2J\rb"
    print_columns(["head"], [[hostile]])
    print_text(hostile)
    print_note(hostile)
    print_json({"name": hostile})
    assert main(["show", hostile]) != 0
    said = "".join(capsys.readouterr())
    assert not {"\x1b", "\u009b", "\r"} & set(said)
    assert '"name": "a\\u001b[31m\\u009b2J\\rb"' in said


def test_a_log_is_followed_to_its_end_through_silence_and_loss(
    one_job: Canned, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    one_job.at("GET /jobs/e1-001/logs", log("", 0), Answer(hang_up=True), log("one\n", 4), log("two\n", 8, ended=True))
    assert main(["logs", "e1-001", "-f"]) == 0
    assert capfdbinary.readouterr().out == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("changed", "words", "said"),
    [
        (
            {"reason": "no agent is enrolled"},
            (),
            "job e1-001 waits for an agent: no agent is enrolled; `prony logs e1-001",
        ),
        (
            {"state": "leased", "agent_id": "a1"},
            (),
            "still runs on agent a1; `prony logs e1-001 --follow` prints the rest",
        ),
        ({"state": "failed", "reason": "lost"}, (), "no log: job e1-001 is failed: lost"),
        ({"state": "failed"}, ("--search", "x"), "leave out --search and --source"),
        ({"state": "complete", "attempt": 1}, ("--attempt", "2"), "has no attempt 2 yet: the newest is attempt 1"),
    ],
)
def test_a_log_without_lines_says_why_and_what_to_do(
    server: Canned, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], words: tuple[str, ...], said: str
) -> None:
    detail = JobDetail(queued=job(**changed), job=loads(RECIPE, name="small.yaml").jobs("e1")[0])
    server.at("GET /jobs/e1-001", document(detail.model_dump_json()))
    server.at("GET /jobs/e1-001/logs", log("", 0, ended=changed.get("state") in ("failed", "complete")))
    assert main(["logs", "e1-001", *words]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_a_followed_log_ends_with_the_state_of_a_job_that_failed(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = JobDetail(
        queued=job(state="failed", reason="exit code 3"), job=loads(RECIPE, name="small.yaml").jobs("e1")[0]
    )
    server.at("GET /jobs/e1-001", document(detail.model_dump_json()))
    server.at("GET /jobs/e1-001/logs", log("one\n", 4), log("", 4, ended=True))
    assert main(["logs", "e1-001", "-f"]) == 0
    assert capsys.readouterr() == ("one\n", "job e1-001 is failed: exit code 3\n")


# Watching


def test_a_program_gets_every_update_as_a_line(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.at("GET /experiments", document(page(view("e1"))))
    ending = ("experiment", view(state="complete").model_dump_json())
    server.at("GET /experiments/e1/events", stream(("snapshot", snapshot(view(), job())), ending))
    server.at("GET /experiments/e1/results", results_of(view(state="complete")))
    lines = [json.loads(line) for line in prony(capsys, "watch", "--json").splitlines()]
    assert [line["kind"] for line in lines] == ["snapshot", "experiment"]
    assert lines[1]["data"]["experiment"]["state"] == "complete"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (view(state="complete", complete=2), 0),
        (view(state="complete", complete=1, failed=1), 1),
        (view(state="failed", failed=2), 1),
        (view(state="cancelled", cancelled=2), 130),
    ],
)
def test_a_program_that_watches_gets_the_exit_code_of_a_run(
    last: ExperimentView, code: int, server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    server.at("GET /experiments/e1", document(last.model_dump_json()))
    server.at("GET /experiments/e1/events", stream(("snapshot", snapshot(last))))
    server.at("GET /experiments/e1/results", results_of(last))
    (line,) = prony(capsys, "watch", "e1", "--json", code=code).splitlines()
    assert json.loads(line)["kind"] == "snapshot"


@pytest.mark.parametrize(("failed", "code"), [(0, 0), (5, 0), (6, 1)])
def test_a_program_that_watches_a_load_is_told_of_more_failures_than_allowed(
    failed: int, code: int, server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    last = view(state="complete", complete=1)
    server.at("GET /experiments/e1", document(last.model_dump_json()))
    server.at("GET /experiments/e1/events", stream(("snapshot", snapshot(last))))
    load = entry({}, counts={"error_rate.mean": [(failed, 100)]}, kind="service")
    server.at("GET /experiments/e1/results", results_of(last, load))
    assert main(["watch", "e1", "--json"]) == code
    assert ("6 of 100 requests failed" in capsys.readouterr().err) is bool(code)


# Submitting


def test_a_model_that_is_a_path_is_told_to_be_one_of_the_agents(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    made = view(state="cancelled", cancelled=2)
    workload = made.experiment.recipe.workload.model_copy(update={"model": "models/mine.onnx"})
    recipe = made.experiment.recipe.model_copy(update={"workload": workload})
    made = made.model_copy(update={"experiment": made.experiment.model_copy(update={"recipe": recipe})})
    server.at("POST /experiments", document(made.model_dump_json(), 201))
    server.at("GET /experiments/e1/events", stream(("snapshot", snapshot(made, job(state="cancelled")))))
    server.at(
        "GET /experiments/e1/results",
        document(ExperimentData(experiment=made.experiment, entries=()).model_dump_json()),
    )
    assert main(["run", str(tmp_path / "small.yaml")]) == 130
    assert "models/mine.onnx is a path" in capsys.readouterr().err


def test_a_program_gets_a_document_of_a_duet_that_was_stopped(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    made = view(state="cancelled", cancelled=2)
    server.at("POST /experiments", document(made.model_dump_json(), 201))
    server.at("GET /experiments/e1/events", stream(("snapshot", snapshot(made, job(state="cancelled")))))
    server.at("GET /experiments/e1", document(made.model_dump_json()))
    server.at("GET /comparison", problem("no_result", 404, "no results"))
    told = prony_json(capsys, "duet", str(tmp_path / "small.yaml"), "--b", "threads=2", code=130)
    assert told["error"]["message"] == "no results"


def test_a_recipe_is_submitted_and_left_alone(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    server.at("POST /experiments", document(view().model_dump_json(), 201))
    words = ("run", str(tmp_path / "small.yaml"), "--detach", "--priority", "7")
    assert prony(capsys, *words) == "e1\n"
    assert json.loads(server.requests[0].body)["priority"] == 7
    assert prony_json(capsys, *words)["experiment"]["id"] == "e1"
    prony(capsys, "run", str(tmp_path / "small.yaml"), "--priority", "101", code=2)


def test_a_wrong_recipe_is_told_here_with_its_line(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(RECIPE + "measure: {run: 3}\n")
    assert main(["run", str(wrong)]) == 2
    assert f"{wrong}:5" in capsys.readouterr().err
    assert server.requests == []


def test_what_the_server_refuses_is_told_in_its_words(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    server.says(problem("forbidden", 403, "a viewer may not submit", hint="ask an admin"))
    assert main(["run", str(tmp_path / "small.yaml")]) == 2
    assert capsys.readouterr().err == "error: a viewer may not submit\n hint: ask an admin\n"


# Exports


def tar(*files: tuple[str, bytes], link: str = "") -> Answer:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return Answer(packed.getvalue())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (tar(("../out", b"x")), 3),
        (tar(("/tmp/out", b"x")), 3),
        (tar(link="e1/link"), 3),
        (Answer(b"no tar at all"), 3),
        (tar(("e1/some.txt", b"x")), 2),
    ],
)
def test_an_export_that_is_none_leaves_nothing(
    answer: Answer, code: int, server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.at("GET /experiments/e1", document(view().model_dump_json()))
    server.at("GET /experiments/e1/export", answer)
    target = tmp_path / "new" / "export"
    assert main(["export", "e1", "--to", str(target)]) == code, capsys.readouterr().err
    assert list(target.parent.iterdir()) == []


def test_a_folder_that_is_no_export_is_not_overwritten(
    server: Canned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.at("GET /experiments/e1", document(view().model_dump_json()))
    (tmp_path / "precious").touch()
    for words in ([], ["--overwrite"]):
        assert main(["export", "e1", "--to", str(tmp_path), *words]) == 2
    assert (tmp_path / "precious").exists()
