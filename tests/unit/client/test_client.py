"""The client against a real server that answers what it is told to: repeats, errors, broken streams, downloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prony.client import Client
from prony.client.watching import Snapshot
from prony.errors import AccessError, ConflictError, NotFoundError, PronyError, StoreError, TransportError
from prony.model.event import Event
from prony.model.lease import LeaseRequest
from prony.model.queue import ExperimentView, JobState, Page, QueuedJob, Submission
from servers.canned import Answer, Canned, document, problem, stream
from servers.documents import RECIPE, job, page, snapshot, view

SUBMISSION = Submission(text=RECIPE)
GONE = Answer(hang_up=True)


# One request


def test_a_recipe_is_handed_in_and_comes_back_as_an_experiment(server: Canned, client: Client) -> None:
    server.says(document(view().model_dump_json(), 201))
    assert client.experiments.submit(SUBMISSION) == view()
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/experiments")
    assert request.headers["Authorization"] == "Bearer secret"
    assert json.loads(request.body)["text"] == RECIPE


def test_filters_that_are_not_given_do_not_travel(server: Canned, client: Client) -> None:
    server.says(document(page(job(), following="c2")))
    found = client.jobs.page(state=JobState.WAITING, label=("who", "me"), limit=5)
    assert found == Page[QueuedJob](items=(job(),), next="c2")
    assert server.requests[0].query == {"state": ["waiting"], "label": ["who=me"], "limit": ["5"]}


def test_a_yes_or_no_is_written_as_the_api_reads_it(server: Canned, client: Client) -> None:
    server.says(Answer(status=204))
    client.experiments.delete("e1", force=True)
    assert server.requests[0].query == {"force": ["true"]}


def test_no_job_within_the_wait_is_none(server: Canned, client: Client) -> None:
    server.says(Answer(status=204))
    assert client.leases.lease(LeaseRequest(agent_id="a1", incarnation="i", wait_s=0)) is None


def test_a_piece_of_a_log_says_where_it_goes_on(server: Canned, client: Client) -> None:
    server.says(Answer(b"line\n", headers={"Prony-Next-Offset": "12", "Prony-Ended": "true"}))
    assert client.jobs.logs("e1-001", offset=7, wait_s=0) == (b"line\n", 12, True)
    server.says(Answer(b"line\n"))
    with pytest.raises(TransportError, match="did not send the offset"):
        client.jobs.logs("e1-001")


def test_a_server_that_is_not_well_answers_all_the_same(server: Canned, client: Client) -> None:
    parts = [{"name": "store", "ok": False, "detail": "disk full"}]
    server.says(document({"ok": False, "version": "1", "parts": parts}, 503))
    assert client.server.health().parts[0].detail == "disk full"
    assert len(server.requests) == 1


# Errors


def test_the_server_s_errors_are_raised_here(server: Canned, client: Client) -> None:
    server.says(problem("conflict", 409, "experiment e1 is running", hint="cancel it first"))
    with pytest.raises(ConflictError, match="is running") as caught:
        client.experiments.delete("e1")
    assert caught.value.hint == "cancel it first"


def test_a_server_that_is_not_there_is_named_with_what_to_do(server: Canned) -> None:
    pauses: list[float] = []
    with (
        Client("http://127.0.0.1:9", attempts=3, sleep=pauses.append) as client,
        pytest.raises(TransportError) as caught,
    ):
        client.jobs.cancel("e1-001")
    assert "http://127.0.0.1:9" in caught.value.message
    assert "prony server" in caught.value.hint
    assert len(pauses) == 2  # nothing had been sent, so it was tried again although it changes something


def test_a_server_that_does_not_answer_in_time_is_told_as_that() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with Client(url, timeout_s=0.1, attempts=1) as client, pytest.raises(TransportError, match="in time"):
            client.server.queue()


# Repeats


def test_what_only_reads_is_asked_again_when_the_connection_breaks_or_the_server_restarts(
    server: Canned, client: Client, pauses: list[float]
) -> None:
    server.says(GONE, problem("store_busy", 503), Answer(b"<html>", 502), document(view().model_dump_json()))
    assert client.experiments.get("e1") == view()
    assert len(server.requests) == 4
    assert len(pauses) == 3


def test_it_gives_up_after_a_few(server: Canned, client: Client) -> None:
    server.says(problem("store_busy", 503))
    with pytest.raises(StoreError):
        client.experiments.get("e1")
    assert len(server.requests) == 4


def test_a_submission_is_repeated_under_the_same_key(server: Canned, client: Client) -> None:
    server.says(GONE, document(view().model_dump_json(), 201))
    client.experiments.submit(SUBMISSION)
    first, second = (request.headers["Idempotency-Key"] for request in server.requests)
    assert first == second
    client.experiments.submit(SUBMISSION)
    assert server.requests[2].headers["Idempotency-Key"] != first


def test_what_changes_something_is_never_sent_twice(server: Canned, client: Client) -> None:
    server.says(GONE)
    with pytest.raises(TransportError):
        client.jobs.retry("e1-001")
    assert len(server.requests) == 1


def test_the_caller_s_mistake_is_told_at_once(server: Canned, client: Client) -> None:
    server.says(problem("unauthorized", 401))
    with pytest.raises(AccessError):
        client.agents.page()
    assert len(server.requests) == 1


# Watching


def watched(client: Client, lost: list[PronyError] | None = None) -> list[object]:
    told = [] if lost is None else lost
    return list(client.experiments.watch("e1", on_lost=lambda error, _: told.append(error)))


def test_a_stream_gives_nouns_until_the_experiment_has_ended(server: Canned, client: Client) -> None:
    event = Event(kind="repetition", job_id="e1-001", done=1, total=2, state="ok")
    server.says(
        stream(
            ("snapshot", snapshot(view(), job())),
            ("job", job(state="leased", agent_id="a1").model_dump_json()),
            ("of_a_newer_server", "{}"),
            ("progress", event.model_dump_json()),
            ("experiment", view(state="complete").model_dump_json()),
        )
    )
    assert watched(client) == [
        Snapshot(experiment=view(), jobs=(job(),)),
        job(state="leased", agent_id="a1"),
        event,
        view(state="complete"),
    ]
    assert len(server.requests) == 1


def test_a_broken_stream_goes_on_with_how_everything_stands_by_then(
    server: Canned, client: Client, pauses: list[float]
) -> None:
    server.says(
        stream(("snapshot", snapshot(view(), job())), ("job", job(state="leased").model_dump_json()), cut=True),
        GONE,
        Answer(b"<html>", 502),
        problem("store", 503),
        stream(
            ("snapshot", snapshot(view())),
        ),
        stream(
            ("snapshot", snapshot(view(state="complete"), job(state="complete"))),
        ),
    )
    lost: list[PronyError] = []
    states = [one.experiment.experiment.state for one in watched(client, lost) if isinstance(one, Snapshot)]
    assert states == ["running", "running", "complete"]
    assert len(lost) == len(pauses) == 5


def test_a_stream_that_breaks_after_the_end_is_not_opened_again(server: Canned, client: Client) -> None:
    ending = ("experiment", view(state="failed").model_dump_json())
    server.says(stream(("snapshot", snapshot(view())), ending, ("job", job().model_dump_json()), cut=True))
    assert isinstance(watched(client)[-1], ExperimentView)
    assert len(server.requests) == 1


def test_an_experiment_that_was_deleted_meanwhile_ends_the_watch(server: Canned, client: Client) -> None:
    server.says(stream(("snapshot", snapshot(view()))), problem("not_found", 404))
    with pytest.raises(NotFoundError):
        watched(client)


def test_a_stream_that_cannot_be_read_is_an_error_and_no_loss(server: Canned, client: Client) -> None:
    server.says(stream(("snapshot", "{}")))
    with pytest.raises(TransportError, match="experiment: is missing"):
        watched(client)


# Downloads


def test_a_download_appears_whole_and_begins_again_when_it_breaks(
    server: Canned, client: Client, tmp_path: Path
) -> None:
    server.says(Answer(b"x" * 100_000, cut=70_000), Answer(b"y" * 100_000))
    target = client.jobs.samples("e1-001", tmp_path / "new" / "samples.parquet")
    assert target.read_bytes() == b"y" * 100_000
    assert list(target.parent.iterdir()) == [target]


def test_a_download_that_fails_leaves_what_was_there(server: Canned, client: Client, tmp_path: Path) -> None:
    target = tmp_path / "export.tar"
    target.write_text("before")
    server.says(Answer(b"x" * 100, cut=7))
    with pytest.raises(TransportError):
        client.experiments.download("e1", target)
    assert target.read_text() == "before"
    assert list(tmp_path.glob(".*")) == []


def test_a_place_that_cannot_be_written_is_named(server: Canned, client: Client, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server.says(Answer(b"x"))
    with pytest.raises(StoreError, match="cannot write"):
        client.experiments.download("e1", tmp_path / "file" / "export.tar")
